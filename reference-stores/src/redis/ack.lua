-- ARGV: owner, lease, up to which seq, now. Answers how many went, or nil without the lease.
local lease = held_lease(ARGV[1], ARGV[2], ARGV[4])
if not lease then
  return false
end
local through = math.min(tonumber(ARGV[3]), lease.delivered)
local acked = math.max(0, through - first_seq() + 1)
redis.call('LTRIM', pending, whole(acked), '-1')
end_lease()
return acked
