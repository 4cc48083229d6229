-- ARGV: owner, lease, expiry, now. Answers 1, or nil without the lease.
if not held_lease(ARGV[1], ARGV[2], ARGV[4]) then
  return false
end
redis.call('HSET', box, 'expiry', ARGV[3])
redis.call('ZADD', expiries, ARGV[3], box)
return 1
