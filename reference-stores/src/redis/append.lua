-- ARGV: body, the greatest seq. Answers the seq.
local last = tonumber(redis.call('HGET', box, 'last_seq') or '0')
if last >= tonumber(ARGV[2]) then
  return redis.error_reply('NOSEQ the box has used every seq there is')
end
redis.call('HSET', box, 'last_seq', whole(last + 1))
redis.call('RPUSH', pending, ARGV[1])
return last + 1
