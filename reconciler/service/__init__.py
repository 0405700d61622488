"""Live state: requests, answers and lists of the API. No other package uses httpx."""
