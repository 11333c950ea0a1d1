import { createRedisScript, type RedisReply, type RedisScript } from '../../platform/db/redis.ts'
import { PERMIT_KINDS } from './permit-table.ts'

/**
 * The permits of one process are a hash: for each subscription how many it has of each kind. The hash ends when the process sends no heartbeat for too
 * long, so those of a process that died are released. One run publishes the permits of some subscriptions and returns what the other processes have.
 *
 * KEYS: the sorted set of processes; the hash of this process. ARGV: this process; the maximum time without a heartbeat in ms; the name of a hash
 * without its process; then for each subscription its id and its counts, empty where there are none. Reply: for each subscription and kind the sum of
 * the other processes.
 */
export const PERMIT_SCRIPT: RedisScript = createRedisScript(`
local ids, sums, writes, removed = {}, {}, {}, {}
for i = 4, #ARGV, 2 do
  table.insert(ids, ARGV[i])
  for _ = 1, ${PERMIT_KINDS} do table.insert(sums, 0) end
  if ARGV[i + 1] == '' then
    table.insert(removed, ARGV[i])
  else
    table.insert(writes, ARGV[i])
    table.insert(writes, ARGV[i + 1])
  end
end
if #removed > 0 then redis.call('HDEL', KEYS[2], unpack(removed)) end
if #writes > 0 then
  redis.call('HSET', KEYS[2], unpack(writes))
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
for _, process in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if process ~= ARGV[1] then
    for i, counts in ipairs(redis.call('HMGET', ARGV[3] .. process, unpack(ids))) do
      local at = (i - 1) * ${PERMIT_KINDS}
      for count in string.gmatch(counts or '', '%d+') do
        at = at + 1
        sums[at] = sums[at] + tonumber(count)
      end
    end
  end
end
return sums
`)

export type PublishedPermits = { readonly id: string; readonly counts: readonly number[] }

export function permitArgs(
  process: { readonly processId: string; readonly silenceMsMax: number; readonly keyStart: string },
  permits: readonly PublishedPermits[],
): string[] {
  const { processId, silenceMsMax, keyStart } = process
  return [
    processId,
    String(silenceMsMax),
    keyStart,
    ...permits.flatMap(({ id, counts }) => [id, counts.some((count) => count > 0) ? counts.join(' ') : '']),
  ]
}

/** The permits of the other processes for each subscription; undefined for an unexpected reply. */
export function parsePermits(reply: RedisReply, subscriptions: number): number[][] | undefined {
  if (!Array.isArray(reply) || reply.length !== subscriptions * PERMIT_KINDS) return undefined
  const sums = reply.map(Number)
  if (!sums.every((sum) => Number.isSafeInteger(sum) && sum >= 0)) return undefined
  return Array.from({ length: subscriptions }, (_, at) => sums.slice(at * PERMIT_KINDS, (at + 1) * PERMIT_KINDS))
}
