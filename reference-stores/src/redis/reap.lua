-- ARGV: now, how many leases at most. Answers how many expired leases it cleared away.
local expired = redis.call('ZRANGEBYSCORE', expiries, '-inf', ARGV[1], 'LIMIT', '0', ARGV[2])
for _, key in ipairs(expired) do
  box = key
  end_lease()
end
return #expired
