-- ARGV: owner, expiry, most, now, how lease ids begin. Answers nil, or the lease, its first seq and the
-- bodies.
local owner, expiry, most, now, name = unpack(ARGV)
local lease = live_lease(now)
local first, waiting = first_seq(), redis.call('LLEN', pending)
if lease then
  if lease.owner ~= owner then
    return false
  end
  local delivered = redis.call('LRANGE', pending, '0', whole(lease.delivered - first))
  return { lease.id, first, delivered }
end
-- Nothing to deliver installs nothing: a lease on an empty box would lock out the next message.
if waiting == 0 then
  return false
end
local count = math.min(waiting, tonumber(most))
local id = name .. '.' .. whole(redis.call('HINCRBY', storage, 'leases', '1'))
redis.call('HSET', box, 'lease', id, 'owner', owner, 'expiry', expiry,
  'delivered', whole(first + count - 1))
redis.call('ZADD', expiries, expiry, box)
return { id, first, redis.call('LRANGE', pending, '0', whole(count - 1)) }
