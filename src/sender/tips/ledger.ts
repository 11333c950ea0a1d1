import type { Clock } from '../../core/clock.ts'
import type { SqlDatabase, SqlWriter } from '../../platform/db/sql.ts'

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

export type TipLedgerDeps = {
  readonly database: SqlDatabase
  readonly clock: Clock
  onFailure(error: unknown): void
  onRecovery(): void
}

/** The payer of all further payers of a day. */
export const OTHER_PAYERS = 'others'
/** Payers with a row of their own, per day: bounds the file. */
export const PAYERS_PER_DAY_MAX = 200
/** Events that wait for the disk; more are lost, and counted. */
const WAITING_MAX = 100_000
const FLUSH_MS = 1000
/** Events of one transaction: some milliseconds of the event loop. */
const BATCH = 500
/** Longer than a transaction is followed and than the journal is read back. */
const RECENT_MS = 3_600_000
/** The journal is read back from so long before the last flush: its lines are written before the events are counted. */
const READ_BACK_MS = 600_000

/**
 * Counts tips per day, tip account and payer, durably. An event is counted once, however often it is recorded: after a crash the journal
 * records again what may not have been written.
 */
export class TipLedger implements AsyncDisposable {
  /** Events that were not counted. */
  lost = 0
  readonly #deps: TipLedgerDeps
  readonly #timer: { cancel(): void; unref?: () => void }
  #waiting: TipEvent[] = []
  #writing: Promise<void> | undefined
  #hasFailed = false
  /** Payers of the days that were written to. */
  readonly #payers = new Map<string, Set<string>>()
  #countedMs: number

  static async open(deps: TipLedgerDeps): Promise<TipLedger> {
    const [row] = await deps.database.rows("SELECT value FROM marks WHERE name = 'counted'")
    return new TipLedger(deps, Number(row?.[0] ?? 0))
  }

  private constructor(deps: TipLedgerDeps, countedMs: number) {
    this.#deps = deps
    this.#countedMs = countedMs
    this.#timer = deps.clock.setRepeating(FLUSH_MS, () => void this.flush())
    this.#timer.unref?.()
  }

  /** Events of the journal before this time are counted for certain. */
  get readBackFromMs(): number {
    return Math.max(0, this.#countedMs - READ_BACK_MS)
  }

  record(event: TipEvent): void {
    if (this.#waiting.length >= WAITING_MAX) this.lost += 1
    else this.#waiting.push(event)
  }

  /** Resolves when everything recorded so far is written, or cannot be written now. */
  async flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
    })
    await this.#writing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer.cancel()
    await this.flush()
    await this.#deps.database[Symbol.asyncDispose]()
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const batch = this.#waiting.slice(0, BATCH)
        await this.#deps.database.count((tx) => this.#countBatch(tx, batch))
        this.#waiting.splice(0, batch.length)
        await new Promise((resolve) => setImmediate(resolve))
      }
      if (this.#hasFailed) this.#deps.onRecovery()
      this.#hasFailed = false
    } catch (error) {
      // The payers of a transaction that was rolled back are read again.
      this.#payers.clear()
      if (!this.#hasFailed) this.#deps.onFailure(error)
      this.#hasFailed = true
    }
  }

  async #countBatch(tx: SqlWriter, batch: readonly TipEvent[]): Promise<void> {
    for (const event of batch) await this.#count(tx, event)
    const newestMs = Math.max(this.#countedMs, ...batch.map(({ atMs }) => atMs))
    await tx.run(
      "INSERT INTO marks (name, value) VALUES ('counted', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      [newestMs],
    )
    await tx.run('DELETE FROM recent WHERE at_ms < ?', [newestMs - RECENT_MS])
    this.#countedMs = newestMs
  }

  async #count(tx: SqlWriter, event: TipEvent): Promise<void> {
    const { signature, outcome, account, lamports, atMs } = event
    const day = new Date(atMs).toISOString().slice(0, 10)
    const [known] = await tx.rows('SELECT state, day, payer FROM recent WHERE signature = ?', [signature])
    if (known === undefined) {
      const payer = await this.#payerOf(tx, day, event.payer)
      await tx.run(
        'INSERT INTO recent (signature, state, day, account, payer, lamports, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)',
        [signature, outcome, day, account, payer, lamports, atMs],
      )
      await add(tx, { day, account, payer }, 'accepted', 1, lamports)
      if (outcome !== 'accepted') await add(tx, { day, account, payer }, outcome, 1, lamports)
      return
    }
    const [state, knownDay, knownPayer] = known as [TipOutcome, string, string]
    // What landed stays so. What expired may have been sent again, and land then.
    const isNews = state === 'accepted' ? outcome !== 'accepted' : state === 'expired' && isOnChain(outcome)
    if (!isNews) return
    if (state === 'expired') await add(tx, { day: knownDay, account, payer: knownPayer }, 'expired', -1, lamports)
    const payer = day === knownDay ? knownPayer : await this.#payerOf(tx, day, event.payer)
    await tx.run('UPDATE recent SET state = ?, day = ?, payer = ?, at_ms = ? WHERE signature = ?', [
      outcome,
      day,
      payer,
      atMs,
      signature,
    ])
    await add(tx, { day, account, payer }, outcome, 1, lamports)
  }

  async #payerOf(tx: SqlWriter, day: string, payer: string): Promise<string> {
    let payers = this.#payers.get(day)
    if (payers === undefined) {
      const rows = await tx.rows('SELECT DISTINCT payer FROM days WHERE day = ?', [day])
      payers = new Set(rows.map(([name]) => String(name)))
      // Around midnight two days are written to.
      if (this.#payers.size >= 2) this.#payers.clear()
      this.#payers.set(day, payers)
    }
    if (!payers.has(payer) && payers.size >= PAYERS_PER_DAY_MAX) return OTHER_PAYERS
    payers.add(payer)
    return payer
  }
}

function isOnChain(outcome: TipOutcome): boolean {
  return outcome === 'landed' || outcome === 'failed'
}

type DayKey = { readonly day: string; readonly account: string; readonly payer: string }

async function add(tx: SqlWriter, key: DayKey, outcome: TipOutcome, by: 1 | -1, lamports: number): Promise<void> {
  const of = (wanted: TipOutcome) => (outcome === wanted ? by : 0)
  await tx.run(
    `INSERT INTO days (day, account, payer, accepted, landed, failed, expired, offered_lamports, tip_lamports)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (day, account, payer) DO UPDATE SET
       accepted = accepted + excluded.accepted, landed = landed + excluded.landed, failed = failed + excluded.failed,
       expired = expired + excluded.expired, offered_lamports = offered_lamports + excluded.offered_lamports,
       tip_lamports = tip_lamports + excluded.tip_lamports`,
    [
      key.day,
      key.account,
      key.payer,
      of('accepted'),
      of('landed'),
      of('failed'),
      of('expired'),
      of('accepted') * lamports,
      of('landed') * lamports,
    ],
  )
}
