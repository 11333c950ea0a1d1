import type { ListedNotice } from '../../contract/notice-wire.ts'
import { type Backoff, createBackoff } from '../../core/backoff.ts'
import { messageOf } from '../../core/error.ts'
import { HOUR_MS } from '../../core/human-units.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { mapInSlices } from '../../platform/process/time-slices.ts'
import type { MetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { noticeMetrics } from './metrics.ts'
import { type Condition, type NoticeRecord, noticeWire } from './notice.ts'
import { Outbox, type OutboxFile } from './outbox.ts'
import type { Receiver } from './receivers.ts'

export type NoticesDeps = BaseDeps & {
  readonly registry: MetricsRegistry
  readonly file: OutboxFile
  readonly receivers: readonly Receiver[]
  /** What is the case now. `sinceMs` is when notices were first used here. */
  readonly observe: (sinceMs: number) => Promise<readonly Condition[]>
}

export type Notices = AsyncDisposable & {
  /** Newest first. */
  list(): readonly NoticeRecord[]
  /** Sends a notice of the kind `test` to every receiver. */
  test(): Promise<NoticeRecord>
}

export const NO_RECEIVER = {
  message: 'no receiver of notices is configured',
  fix: 'Add [[notices.webhooks]] or notices.command to the config and restart.',
}

const CHECK_MS = 15_000
const RETRY = { firstMs: 5000, maxMs: 3_600_000 }

type Line = {
  readonly receiver: Receiver
  readonly backoff: Backoff
  notBeforeMs: number
  sending: Promise<void> | undefined
}

/**
 * Watches for what an operator wants to know at once, and sends each case once to every receiver. A receiver that fails gets its notices later, in
 * their order; it delays no other receiver.
 */
export async function startNotices(options: { readonly giveUpHours: number }, deps: NoticesDeps): Promise<Notices> {
  const { clock, random, receivers } = deps
  const log = deps.log.child({ part: 'notices' })
  const outbox = await Outbox.open(
    { receiversOf: (kind) => receivers.filter((one) => one.accepts(kind)).map(({ name }) => name) },
    {
      file: deps.file,
      random,
      nowMs: clock.nowMs(),
      onDamaged: (reason) => log.warn({ reason }, 'the file of notices cannot be read and begins anew'),
    },
  )
  outbox.giveUpOthers(new Set(receivers.map(({ name }) => name)))
  const lines = receivers.map((receiver): Line => {
    return { receiver, backoff: createBackoff(RETRY, random), notBeforeMs: 0, sending: undefined }
  })
  const waiting = () => lines.reduce((sum, { receiver }) => sum + [...outbox.waitingFor(receiver.name)].length, 0)
  const metrics = noticeMetrics(deps.registry, waiting)
  let checking: Promise<void> | undefined
  const closing = new AbortController()
  let wasFull = false

  async function check(): Promise<void> {
    const made = await outbox.observe(await deps.observe(outbox.sinceMs), clock.nowMs())
    await mapInSlices(made, report)
    if (outbox.isFull && !wasFull) log.warn('more conditions hold than are watched: some cause no notice')
    wasFull = outbox.isFull
  }

  function report({ id, kind, message }: NoticeRecord): void {
    metrics.made.inc({ kind })
    log.info({ notice: id, kind, message }, 'notice')
  }

  function tick(): void {
    if (closing.signal.aborted) return
    checking ??= check()
      .catch((error: unknown) => log.warn({ reason: messageOf(error) }, 'notices could not be checked'))
      .finally(() => {
        checking = undefined
        deliverAll()
      })
  }

  function deliverAll(): void {
    for (const line of lines) {
      if (closing.signal.aborted || line.sending !== undefined || clock.monotonicMs() < line.notBeforeMs) continue
      line.sending = deliver(line)
        .catch((error: unknown) => log.warn({ reason: messageOf(error) }, 'the file of notices cannot be written'))
        .finally(() => {
          line.sending = undefined
        })
    }
  }

  /** Sends what waits for a receiver, until one attempt fails. */
  async function deliver(line: Line): Promise<void> {
    const { receiver, backoff } = line
    for (const { notice, delivery } of outbox.waitingFor(receiver.name)) {
      if (closing.signal.aborted) return
      const result = await receiver.send(notice, closing.signal)
      if (closing.signal.aborted && !result.ok) return
      delivery.attempts += 1
      delivery.lastAtMs = clock.nowMs()
      delivery.lastFailure = result.ok ? null : result.reason
      const isOver =
        !result.ok && (result.isFinal === true || delivery.lastAtMs >= notice.atMs + options.giveUpHours * HOUR_MS)
      if (result.ok) delivery.state = 'delivered'
      if (isOver) delivery.state = 'given-up'
      await outbox.save()
      metrics.attempts.inc({ result: result.ok ? 'delivered' : isOver ? 'given-up' : 'failed' })
      if (result.ok) {
        backoff.reset()
        continue
      }
      const fields = { notice: notice.id, receiver: receiver.name, attempts: delivery.attempts, reason: result.reason }
      log.warn(fields, isOver ? 'a notice was given up' : 'a notice could not be delivered')
      if (isOver) continue
      line.notBeforeMs = clock.monotonicMs() + backoff.nextMs()
      return
    }
  }

  const timer = clock.setRepeating(CHECK_MS, tick)
  timer.unref?.()
  return {
    list: () => outbox.list(),
    async test() {
      const message = 'this is a test notice of sluice'
      const notice = await outbox.add({ key: '', kind: 'test', message, data: {} }, clock.nowMs())
      report(notice)
      for (const line of lines) line.notBeforeMs = 0
      deliverAll()
      return notice
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      timer.cancel()
      await checking
      for (const { sending } of lines) await sending
      for (const { receiver } of lines) receiver[Symbol.dispose]()
    },
  }
}

export function noticeRecordWire(record: NoticeRecord): ListedNotice {
  return {
    ...noticeWire(record),
    deliveries: record.deliveries.map(({ receiver, state, attempts, lastAtMs, lastFailure }) => ({
      receiver,
      state,
      attempts,
      last_at: lastAtMs === null ? null : new Date(lastAtMs).toISOString(),
      last_failure: lastFailure,
    })),
  }
}
