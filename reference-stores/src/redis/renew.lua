-- ARGV: owner, lease, expiry, now. Answers 1, or nil without the lease. An expiry of 0 changes nothing.
if not held_lease(ARGV[1], ARGV[2], ARGV[4]) then
  return false
end
if tonumber(ARGV[3]) > 0 then
  redis.call('HSET', box, 'expiry', ARGV[3])
  redis.call('ZADD', expiries, ARGV[3], box)
end
return 1
