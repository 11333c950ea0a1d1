import type { Clock } from '../../core/clock.ts'
import type { SqlDatabase, SqlWriter } from '../../platform/db/sql.ts'
import { LEDGER_LAMPORTS_MAX, saturatedLamports } from './lamports.ts'

/** What became of a transaction. Only `landed` moves its tip. */
export type TipOutcome = 'accepted' | 'landed' | 'failed' | 'expired'

export type TipEvent = {
  readonly outcome: TipOutcome
  readonly signature: string
  readonly account: string
  readonly payer: string
  readonly lamports: number
  readonly atMs: number
}

/** Counts events durably. */
export type TipCounter = AsyncDisposable & {
  /** The time of the newest event that is counted; 0 when there is none. */
  readonly countedMs: number
  /** Counts all of the batch, or fails and has counted none of it. One batch at a time. */
  count(batch: readonly TipEvent[]): Promise<void>
}

/** The payer of all further payers of a day. */
export const OTHER_PAYERS = 'others'
/** Payers with a row of their own, per day: bounds the file. */
export const PAYERS_PER_DAY_MAX = 200
/** Longer than a transaction is followed and than the journal is read back. */
const RECENT_MS = 3_600_000
/** What earlier processes left is kept for so long: none of them may have run for RECENT_MS. */
const LEFT_MS = 24 * RECENT_MS

/** The last known outcome of a transaction, and where it is counted. */
type Recent = {
  readonly event: TipEvent
  readonly state: TipOutcome
  readonly day: string
  readonly payer: string
  readonly atMs: number
}
type Sum = { readonly day: string; readonly account: string; readonly payer: string } & Record<
  TipOutcome | 'offeredLamports' | 'tipLamports',
  number
>
/** What a batch changes: written at its end, once for each transaction and once for each row of `days`. */
type Changes = { readonly recent: Map<string, Recent>; readonly sums: Map<string, Sum> }

/**
 * Counts tips per day, tip account and payer in a database. An event is counted once, however often it is recorded: after a crash the
 * journal records again what may not have been written.
 */
export async function openTipCounter(database: SqlDatabase, clock: Clock): Promise<TipCounter> {
  const [row] = await database.rows("SELECT value FROM marks WHERE name = 'counted'")
  let countedMs = Number(row?.[0] ?? 0)
  const leftMs = Math.min(countedMs, clock.nowMs()) - LEFT_MS
  const recentTimes = new RecentTimes(clock)
  /** Payers of the days that were written to. */
  const payersOfDay = new Map<string, Set<string>>()

  async function payerOf(tx: SqlWriter, day: string, payer: string): Promise<string> {
    let payers = payersOfDay.get(day)
    if (payers === undefined) {
      const rows = await tx.rows('SELECT DISTINCT payer FROM days WHERE day = ?', [day])
      payers = new Set(rows.map(([name]) => String(name)))
      // Around midnight two days are written to.
      if (payersOfDay.size >= 2) payersOfDay.clear()
      payersOfDay.set(day, payers)
    }
    if (!payers.has(payer) && payers.size >= PAYERS_PER_DAY_MAX) return OTHER_PAYERS
    payers.add(payer)
    return payer
  }

  async function countOne(tx: SqlWriter, event: TipEvent, changes: Changes): Promise<void> {
    const { signature, outcome, atMs } = event
    const day = new Date(atMs).toISOString().slice(0, 10)
    const known = changes.recent.get(signature) ?? (await findRecent(tx, event))
    if (known === undefined) {
      const payer = await payerOf(tx, day, event.payer)
      add(changes, { day, payer }, 'accepted', 1, event)
      if (outcome !== 'accepted') add(changes, { day, payer }, outcome, 1, event)
      changes.recent.set(signature, { event, state: outcome, day, payer, atMs })
      return
    }
    // What landed stays so. What expired may have been sent again, and land then.
    const isNews = known.state === 'accepted' ? outcome !== 'accepted' : known.state === 'expired' && isOnChain(outcome)
    if (!isNews) return
    if (known.state === 'expired') add(changes, known, 'expired', -1, event)
    const payer = day === known.day ? known.payer : await payerOf(tx, day, event.payer)
    add(changes, { day, payer }, outcome, 1, event)
    changes.recent.set(signature, { event, state: outcome, day, payer, atMs })
  }

  async function write(
    tx: SqlWriter,
    { recent, sums }: Changes,
    { newestMs, oldestMs }: { newestMs: number; oldestMs: number },
  ): Promise<void> {
    for (const { event, state, day, payer, atMs } of recent.values()) {
      await tx.run(
        `INSERT INTO recent (signature, state, day, account, payer, lamports, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (signature) DO UPDATE SET
           state = excluded.state, day = excluded.day, payer = excluded.payer, at_ms = excluded.at_ms`,
        [event.signature, state, day, event.account, payer, event.lamports, atMs],
      )
    }
    for (const sum of sums.values()) await addToDay(tx, sum)
    await tx.run(
      "INSERT INTO marks (name, value) VALUES ('counted', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      [newestMs],
    )
    await tx.run('DELETE FROM recent WHERE at_ms < ?', [Math.max(leftMs, recentTimes.oldestOf(oldestMs) - RECENT_MS)])
  }

  return {
    get countedMs() {
      return countedMs
    },
    async count(batch) {
      const newestMs = batch.reduce((newest, { atMs }) => Math.max(newest, atMs), countedMs)
      const oldestMs = batch.reduce((oldest, { atMs }) => Math.min(oldest, atMs), newestMs)
      try {
        await database.count(async (tx) => {
          const changes: Changes = { recent: new Map(), sums: new Map() }
          for (const event of batch) await countOne(tx, event, changes)
          await write(tx, changes, { newestMs, oldestMs })
        })
      } catch (error) {
        // The payers of a transaction that was rolled back are read again.
        payersOfDay.clear()
        throw error
      }
      countedMs = newestMs
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/**
 * The oldest time of the events of the last hour or two, by the monotonic clock. The wall clock may be ahead for some batches: by their time
 * alone, everything before them would be old. Nothing is old in the first hour.
 */
class RecentTimes {
  readonly #clock: Clock
  #periodAtMs: number
  #before = Number.NEGATIVE_INFINITY
  #now = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
    this.#periodAtMs = clock.monotonicMs()
  }

  oldestOf(oldestMs: number): number {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#periodAtMs >= RECENT_MS) {
      this.#periodAtMs = nowMs
      this.#before = this.#now
      this.#now = Number.POSITIVE_INFINITY
    }
    this.#now = Math.min(this.#now, oldestMs)
    return Math.min(this.#before, this.#now)
  }
}

async function findRecent(tx: SqlWriter, event: TipEvent): Promise<Recent | undefined> {
  const [row] = await tx.rows('SELECT state, day, payer, at_ms FROM recent WHERE signature = ?', [event.signature])
  if (row === undefined) return undefined
  const [state, day, payer, atMs] = row as [TipOutcome, string, string, number]
  return { event, state, day, payer, atMs }
}

function isOnChain(outcome: TipOutcome): boolean {
  return outcome === 'landed' || outcome === 'failed'
}

function add(
  { sums }: Changes,
  { day, payer }: Pick<Recent, 'day' | 'payer'>,
  outcome: TipOutcome,
  by: 1 | -1,
  { account, lamports }: TipEvent,
): void {
  const key = `${day} ${account} ${payer}`
  let sum = sums.get(key)
  if (sum === undefined) {
    sum = { day, account, payer, accepted: 0, landed: 0, failed: 0, expired: 0, offeredLamports: 0, tipLamports: 0 }
    sums.set(key, sum)
  }
  sum[outcome] += by
  if (outcome === 'accepted') sum.offeredLamports = saturatedLamports(sum.offeredLamports + by * lamports)
  if (outcome === 'landed') sum.tipLamports = saturatedLamports(sum.tipLamports + by * lamports)
}

async function addToDay(tx: SqlWriter, sum: Sum): Promise<void> {
  await tx.run(
    `INSERT INTO days (day, account, payer, accepted, landed, failed, expired, offered_lamports, tip_lamports)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (day, account, payer) DO UPDATE SET
       accepted = accepted + excluded.accepted, landed = landed + excluded.landed, failed = failed + excluded.failed,
       expired = expired + excluded.expired,
       offered_lamports = min(offered_lamports + excluded.offered_lamports, ${LEDGER_LAMPORTS_MAX}),
       tip_lamports = min(tip_lamports + excluded.tip_lamports, ${LEDGER_LAMPORTS_MAX})`,
    [
      sum.day,
      sum.account,
      sum.payer,
      sum.accepted,
      sum.landed,
      sum.failed,
      sum.expired,
      sum.offeredLamports,
      sum.tipLamports,
    ],
  )
}
