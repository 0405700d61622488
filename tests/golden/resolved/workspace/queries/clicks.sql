select event from events
where event = 'click'
