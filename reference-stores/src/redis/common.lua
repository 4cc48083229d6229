-- What every script of an operation begins with. The keys of an operation on a box:
--   storage   hash: kind (what the storage is), leases (how many were ever granted)
--   expiries  sorted set: each leased box with its lease's expiry, for reap alone
--   box       hash: last_seq, and of its lease: lease (the id), owner, expiry, delivered (a seq)
--   pending   list: the bodies in order
-- Messages only ever leave a box from its front, and a seq is minted for each that comes in at its
-- back. So the seqs of the pending ones run up to last_seq without a gap, and none is stored.
--
-- Numbers are doubles here: exact for every seq and every moment that the contract has. They are
-- written with whole(), since Lua itself would write 1e+15.
local storage, expiries, box, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local function whole(number)
  return string.format('%.0f', number)
end

-- The first seq that is pending, or would be next.
local function first_seq()
  local last = tonumber(redis.call('HGET', box, 'last_seq') or '0')
  return last - redis.call('LLEN', pending) + 1
end

-- The live lease at this moment, or nil.
local function live_lease(now)
  local found = redis.call('HMGET', box, 'lease', 'owner', 'expiry', 'delivered')
  if not found[1] or tonumber(now) >= tonumber(found[3]) then
    return nil
  end
  return { id = found[1], owner = found[2], delivered = tonumber(found[4]) }
end

-- The live lease if this owner holds it by this id, or nil.
local function held_lease(owner, id, now)
  local lease = live_lease(now)
  if lease and lease.owner == owner and lease.id == id then
    return lease
  end
  return nil
end

local function end_lease()
  redis.call('HDEL', box, 'lease', 'owner', 'expiry', 'delivered')
  redis.call('ZREM', expiries, box)
end

-- Also what keeps a handle from bringing a destroyed storage back to life.
if redis.call('HGET', storage, 'kind') ~= 'storeproof-mailbox/1' then
  return redis.error_reply('NOSTORAGE the storage is gone')
end

