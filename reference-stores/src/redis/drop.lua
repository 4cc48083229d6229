-- Answers how many messages went.
local dropped = redis.call('LLEN', pending)
redis.call('DEL', pending)
end_lease()
return dropped
