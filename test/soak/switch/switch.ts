import { until } from '../../../src/platform/process/test-wait.ts'
import { pause } from '../client.ts'
import { compareReceipts, compareSeen, compareTables, compareUsage, finalBlocks } from './compare.ts'
import { callRpc, fund, type Load, query, sendTransactions } from './load.ts'
import { startServedChain } from './served-chain.ts'
import { watchDecoded, watchExecution, watchGeyser, watchPubSub, watchShreds } from './watch.ts'

export type SwitchReport = {
  readonly counts: Readonly<Record<string, number>>
  /** Milliseconds until the process had learned the new slot length. */
  readonly learnedMs: number
  readonly blocks: { readonly before: number; readonly after: number }
  readonly violations: readonly string[]
}

const CALLERS = 4
const VIOLATIONS_MAX = 50
/** "Within a minute". */
const LEARNED_MS_MAX = 60_000

/**
 * Changes the consensus and the slot length of the chain under load on all products: no row is lost, no charge is wrong, no connection is dropped and no
 * receipt is wrong.
 */
export async function soakSwitch({ seconds }: { readonly seconds: number }): Promise<SwitchReport> {
  await using served = await startServedChain()
  const counts = new Map<string, number>()
  const violations: string[] = []
  const startMs = performance.now()
  const report = (violation: string): void => {
    if (violations.length < VIOLATIONS_MAX)
      violations.push(`${Math.round((performance.now() - startMs) / 1000)} s: ${violation}`)
  }
  let isOver = false
  const load: Load = {
    served,
    isOver: () => isOver,
    report,
    count: (what, by = 1) => void counts.set(what, (counts.get(what) ?? 0) + by),
  }
  const tips = (await (await fetch(`http://${served.at.sender}/tips`)).json()) as { tip_accounts: string[] }
  const tipAccount = tips.tip_accounts[0] as string
  await fund(served, tipAccount)

  using pubsub = watchPubSub(served, report)
  using geyser = watchGeyser(served, report)
  using decoded = watchDecoded(served, report)
  using shreds = await watchShreds()
  await served.run('shred', 'set-destination', 'acme-prod', `127.0.0.1:${shreds.port}`, '--vouched')
  using execution = watchExecution(served, report)
  await Promise.all([pubsub, geyser, decoded, shreds].map(({ isReady }) => isReady))
  const slotNow = () => served.chain<number>('getSlot', { commitment: 'processed' })
  // What was under way when the streams were opened is not compared.
  const from = (await slotNow()) + 3
  const sent: string[] = []
  const running = [
    ...Array.from({ length: CALLERS }, () => callRpc(load)),
    query(load),
    sendTransactions(load, tipAccount, sent),
  ]

  await pause(seconds * 500)
  const switched = JSON.parse(
    await served.run('localnet', 'set', '--consensus', 'alpenglow', '--slot-ms', '200', '--json'),
  ) as { from_slot: number }
  const switchMs = performance.now()
  let learnedMs = Number.POSITIVE_INFINITY
  const learning = until(
    'the slot length is learned',
    async () => {
      const status = JSON.parse(await served.run('status', '--json')) as { slot_length: { ms: number } }
      return Math.abs(status.slot_length.ms - 200) < 60
    },
    2 * LEARNED_MS_MAX,
  ).then(() => {
    learnedMs = performance.now() - switchMs
  })
  await pause(seconds * 500)
  await learning.catch(() => {})
  if (learnedMs > LEARNED_MS_MAX) report(`the slot length was learned after ${Math.round(learnedMs)} ms`)
  isOver = true
  await Promise.all(running)

  const to = await slotNow()
  const blocks = await finalBlocks(served, from, to)
  // A stream of confirmed transactions may be a moment behind.
  const last = (blocks.get([...blocks.keys()].at(-1) as number)?.signatures ?? []).at(-1)
  const hasLast = ({ seen }: { seen: ReadonlyMap<number, readonly string[]> }) =>
    last === undefined || [...seen.values()].some((list) => list.includes(last))
  await until('the streams are at the end', () => [pubsub, geyser, decoded, shreds].every(hasLast), 20_000).catch(
    () => {},
  )
  compareSeen('logs', pubsub.seen, blocks, report)
  compareSeen('grpc', geyser.seen, blocks, report)
  compareSeen('shreds', shreds.seen, blocks, report)
  compareSeen('decoded', decoded.seen, blocks, report, switched.from_slot)
  await compareTables(served, blocks, report)
  load.count('landed', await compareReceipts(served, sent, report))
  await compareUsage(served, counts.get('units') ?? 0, report)
  load.count('frames', execution.frames)
  for (const line of served.complaints()) report(`log: ${line}`)
  const before = [...blocks.keys()].filter((slot) => slot < switched.from_slot).length
  return {
    counts: Object.fromEntries(counts),
    learnedMs,
    blocks: { before, after: blocks.size - before },
    violations,
  }
}
