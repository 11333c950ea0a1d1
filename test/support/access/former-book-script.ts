import { createRedisScript, type RedisScript } from '../../../src/platform/db/redis.ts'

/** The booking script before each bucket had a time of its own: what machines run that are not upgraded yet. */
export const FORMER_BOOK_SCRIPT: RedisScript = createRedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local days = math.floor(now / 86400000) + 719468
local era = math.floor(days / 146097)
local doe = days - era * 146097
local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
local march = math.floor((5 * doy + 2) / 153)
local month = (yoe + era * 400 - 1970) * 12 + march + 2

local records = {}
local function unbooked(field, spent, known)
  table.insert(records, field)
  table.insert(records, spent)
  return tonumber(spent) - tonumber(redis.call('HGET', KEYS[2], field) or known)
end

local held = redis.call('HMGET', KEYS[1], 'at', 'month', 'used')
local elapsed = math.max(0, now - (tonumber(held[1]) or now))
local current, used = tonumber(held[2]), tonumber(held[3])
if not current then
  current, used = month, tonumber(ARGV[4])
elseif month > current then
  current, used = month, 0
elseif month < current - 1 then
  current = month
end
used = math.max(0, used + unbooked(ARGV[1], ARGV[2], ARGV[3]))

local writes = { 'at', string.format('%.0f', now), 'month', current, 'used', string.format('%.0f', used) }
local reply = { current, used }
for i = 5, #ARGV, 5 do
  local capacity = tonumber(ARGV[i + 2])
  local level = tonumber(redis.call('HGET', KEYS[1], ARGV[i])) or capacity
  level = math.min(capacity, level + elapsed * tonumber(ARGV[i + 1]) / 1000)
  level = math.min(capacity, level - unbooked(ARGV[i], ARGV[i + 3], ARGV[i + 4]))
  -- All digits of a number: a slow rate adds less than a millionth of a unit between two bookings.
  local text = string.format('%.17g', level)
  table.insert(writes, ARGV[i])
  table.insert(writes, text)
  table.insert(reply, text)
end
redis.call('HSET', KEYS[1], unpack(writes))
redis.call('PEXPIRE', KEYS[1], 3456000000)
redis.call('HSET', KEYS[2], unpack(records))
redis.call('PEXPIRE', KEYS[2], 86400000)
return reply
`)
