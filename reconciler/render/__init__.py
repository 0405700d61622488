"""Drawing: values to text. Decides nothing, and every plan is drawn from its saved form."""
