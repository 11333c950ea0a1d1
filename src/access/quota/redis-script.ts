import { createRedisScript, type RedisReply, type RedisScript } from '../../platform/db/redis.ts'

/**
 * The shared account of one subscription: a hash with the month (`month`, months since 1970), the units spent in it (`used`), and the level of each
 * bucket in units with the time of its last refill. Uses the server's time, so that no process's clock can create units. One run books what a
 * process has spent and returns what remains; levels may be negative, so spending ahead is paid back.
 *
 * Each bucket has its own time, because a process books only the buckets that it has used. The former version had one time for all of them, `at`,
 * and still has on machines that are not upgraded yet. So `at` is written too, for the former version, and once more as `timed`: where the two
 * differ the former version has booked since. It may have refilled any bucket until then (`former`), and no time refills a bucket twice.
 *
 * A process sends its total spending, never a difference: the difference to what is already booked for it is computed here from a second hash. So a
 * booking whose reply was lost can be sent again and counts once. The total counts from the opening of the account in the process, and the hash has
 * the records of the latest opening only, so it does not grow. A booking of an earlier opening is late, from a connection that was given up, and
 * books nothing: an account is closed when all is booked, or its units are dropped.
 *
 * KEYS: the hash of the subscription; the hash of what this spender has booked. ARGV: the field of the month, units spent in it, units the caller
 * knows to be booked (used when the server has no record), the units of the month known to the caller (used when the server has none: it is new or
 * lost its data), the number of the opening, then for each bucket its field, rate per second, capacity, units spent and units known to be booked.
 * Reply: month, used, then the level of each bucket as text.
 *
 * The calendar is Howard Hinnant's civil_from_days. The month only moves forward, unless the stored one is ahead by more than one.
 */
export const BOOK_SCRIPT: RedisScript = createRedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local days = math.floor(now / 86400000) + 719468
local era = math.floor(days / 146097)
local doe = days - era * 146097
local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
local march = math.floor((5 * doy + 2) / 153)
local month = (yoe + era * 400 - 1970) * 12 + march + 2

local records = { 'opening', ARGV[5] }
local opening = tonumber(redis.call('HGET', KEYS[2], 'opening') or ARGV[5])
local isLate = opening > tonumber(ARGV[5])
if opening < tonumber(ARGV[5]) then redis.call('DEL', KEYS[2]) end
local function unbooked(field, spent, known)
  if isLate then return 0 end
  table.insert(records, field)
  table.insert(records, spent)
  return tonumber(spent) - tonumber(redis.call('HGET', KEYS[2], field) or known)
end

local held = redis.call('HMGET', KEYS[1], 'at', 'month', 'used', 'timed', 'former')
local former = tonumber(held[1] ~= held[4] and held[1] or held[5])
-- A server's clock that was ahead must not stop the refill until it is that late again.
if former then former = math.min(former, now) end
local function sinceRefill(time)
  return math.max(0, now - math.max(tonumber(time) or former or now, former or 0))
end
local current, used = tonumber(held[2]), tonumber(held[3])
if not current then
  current, used = month, tonumber(ARGV[4])
elseif month > current then
  current, used = month, 0
elseif month < current - 1 then
  current = month
end
used = math.max(0, used + unbooked(ARGV[1], ARGV[2], ARGV[3]))

local nowText = string.format('%.0f', now)
local writes = { 'at', nowText, 'timed', nowText, 'month', current, 'used', string.format('%.0f', used) }
if former then
  table.insert(writes, 'former')
  table.insert(writes, string.format('%.0f', former))
end
local reply = { current, used }
for i = 6, #ARGV, 5 do
  local capacity = tonumber(ARGV[i + 2])
  local timeField = 't:' .. ARGV[i]
  local bucket = redis.call('HMGET', KEYS[1], ARGV[i], timeField)
  local level = tonumber(bucket[1]) or capacity
  level = math.min(capacity, level + sinceRefill(bucket[2]) * tonumber(ARGV[i + 1]) / 1000)
  level = math.min(capacity, level - unbooked(ARGV[i], ARGV[i + 3], ARGV[i + 4]))
  -- All digits of a number: a slow rate adds less than a millionth of a unit between two bookings.
  local text = string.format('%.17g', level)
  table.insert(writes, ARGV[i])
  table.insert(writes, text)
  table.insert(writes, timeField)
  table.insert(writes, nowText)
  table.insert(reply, text)
end
redis.call('HSET', KEYS[1], unpack(writes))
redis.call('PEXPIRE', KEYS[1], 3456000000)
if not isLate then redis.call('HSET', KEYS[2], unpack(records)) end
redis.call('PEXPIRE', KEYS[2], 86400000)
return reply
`)

/** Units spent, and how many of them are known to be booked. */
export type Spending = { readonly spent: number; readonly booked: number }

/** What one process books for one subscription. */
export type Booking = {
  /** The number of the opening from which spending is counted; a later one has a higher number. */
  readonly opening: number
  readonly month: Spending & { readonly number: number; readonly usedKnown: number }
  readonly buckets: readonly (Spending & {
    readonly key: string
    readonly perSecond: number
    readonly capacity: number
  })[]
}

export type Booked = { readonly month: number; readonly used: number; readonly levels: readonly number[] }

export function bookingArgs({ opening, month, buckets }: Booking): string[] {
  return [
    `m:${month.number}`,
    String(month.spent),
    String(month.booked),
    String(month.usedKnown),
    String(opening),
    ...buckets.flatMap(({ key, perSecond, capacity, spent, booked }) => [
      `b:${key}`,
      String(perSecond),
      String(capacity),
      String(spent),
      String(booked),
    ]),
  ]
}

/** Undefined for an unexpected reply. */
export function parseBooked(reply: RedisReply, buckets: number): Booked | undefined {
  if (!Array.isArray(reply) || reply.length !== buckets + 2) return undefined
  const [month, used, ...levels] = reply.map(Number)
  if (month === undefined || used === undefined || ![month, used, ...levels].every(Number.isFinite)) return undefined
  return { month, used, levels }
}

/**
 * Counts the processes that share the ledger: each sends a heartbeat every second, and those without one for too long are removed, as are their
 * permits (`permit-script.ts`).
 *
 * KEYS: the sorted set of processes; the hash of this process's permits; the time since which the server has data. ARGV: this process, the maximum
 * time without a heartbeat in ms, `stay` or `leave`. Reply: the number of processes; 1 where the server had no permits of this process, not even
 * that there are none; how long the server has had data, in ms.
 */
export const LIVE_SCRIPT: RedisScript = createRedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local isNew = 0
if ARGV[3] == 'leave' then
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('UNLINK', KEYS[2])
else
  redis.call('ZADD', KEYS[1], now, ARGV[1])
  isNew = redis.call('HSETNX', KEYS[2], ':process', 1)
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - tonumber(ARGV[2])))
redis.call('PEXPIRE', KEYS[1], 86400000)
local since = math.min(now, tonumber(redis.call('GET', KEYS[3]) or now))
redis.call('SET', KEYS[3], string.format('%.0f', since), 'PX', 86400000)
return { redis.call('ZCARD', KEYS[1]), isNew, now - since }
`)

export type Heartbeat = { readonly processes: number; readonly isNew: boolean; readonly ageMs: number }

/** Undefined for an unexpected reply. */
export function parseHeartbeat(reply: RedisReply): Heartbeat | undefined {
  if (!Array.isArray(reply) || reply.length !== 3 || !reply.every(Number.isSafeInteger)) return undefined
  const [processes, isNew, ageMs] = reply as [number, number, number]
  return { processes: Math.max(1, processes), isNew: isNew === 1, ageMs }
}
