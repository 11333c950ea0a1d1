import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { messageOf } from '../../../core/error.ts'
import { openAppendFile } from '../../../platform/files/append.ts'
import { type GrantedSchedule, scheduleThisThread } from '../../../platform/native/thread-schedule.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import { collectOnlyDoubledHeaps } from '../../../platform/process/garbage-collection.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import { JOURNAL_NAMES } from '../../../sender/receipts/journal.ts'
import { type Sender, startSender } from '../../../sender/service.ts'
import { openCounterInWorker } from '../../../sender/tips/counter-in-worker.ts'
import { TipLedger, WAITING_MAX } from '../../../sender/tips/ledger.ts'
import type { Upstreams } from '../../../upstreams/service.ts'
import type { Config } from '../config/config.ts'
import { listenerOf } from '../config/listener.ts'
import { isTrial } from '../config/served.ts'
import { openHeldBytes } from '../process/memory.ts'
import type { ServiceContext, ServiceSettings } from '../process/service-context.ts'
import { VERSION } from '../process/version.ts'
import { hasTipKeys, openIdentity, openTipAccounts } from './tip-keys.ts'

export type SenderPart = Sender & {
  /** Of its event loop and the threads that check signatures. */
  readonly schedule: GrantedSchedule
}

export type SenderPartDeps = ServiceContext<'sender'> & {
  readonly upstreams: Upstreams
  readonly memory: Pick<MemoryGuard, 'mayAccept'>
}

/** One core is reserved for the event loop; beyond this many threads the event loop is the bottleneck. */
const CHECK_THREADS_MAX = 4

/** Whether all transactions go to the embedded chain. */
export function sendsToTrialOnly(config: Config): boolean {
  return isTrial(config) && config.sender.rpc.length + config.sender.relays.length === 0
}

/** In a trial the thread pool of the runtime checks what the event loop does not: a thread that has nothing to do takes 7 MB. */
export function checkThreadsOf(config: Config, cores: number): number {
  if (sendsToTrialOnly(config)) return 0
  return Math.min(CHECK_THREADS_MAX, Math.max(1, cores - 1))
}

/** Where both are raised, the shred relay runs first: it has microseconds. */
const SENDER_RANK = 1

const KEEP_TIP_KEYS =
  'tip wallets were created: they own every tip that is paid, and cannot be made again; back them up with: sluice backup FILE --state DIR'

/** TPU Sender as the `sender` section of the configuration sets it up, with its keys and journal in the state folder. */
export async function openSender({ config, loaded }: ServiceSettings, deps: SenderPartDeps): Promise<SenderPart> {
  const { state, upstreams, log, clock, random, registry, lifecycle, env, listenerMetrics } = deps
  await using opening = new AsyncDisposableStack()
  const { publicUrl: _publicUrl, enabled: _enabled, priority, ...options } = config.sender
  const isTrialOnly = sendsToTrialOnly(config)
  const keysDir = await state.folder('keys')
  const isNew = options.tipAccounts.length === 0 && !hasTipKeys(keysDir)
  const tipAccounts = options.tipAccounts.length > 0 ? options.tipAccounts : await openTipAccounts(keysDir, random)
  if (isNew) log.warn({ part: 'sender', folder: keysDir, state: state.path }, KEEP_TIP_KEYS)
  const folder = await state.folder('sender')
  const journalMode = options.journalSync ? 'write-through' : 'write'
  const journal = async (name: string) => opening.use(await openAppendFile(join(folder, name), journalMode))
  const tipLedger = await openTipLedger(folder, deps)
  if (tipLedger !== undefined) opening.use(tipLedger)
  const identityFile = options.quic.identity === undefined ? undefined : resolve(loaded.folder, options.quic.identity)
  // After the tip ledger, whose thread is not urgent: threads that are started from here on have the same priority.
  const schedule = await scheduleThisThread({ priority }, SENDER_RANK)
  const { refused } = schedule
  if (refused.length > 0) log.warn({ part: 'sender', refused }, 'the sender is not scheduled as configured')
  // Receipts are kept, so its heap always grows.
  if (!isTrialOnly) collectOnlyDoubledHeaps()
  const sender = opening.use(
    await startSender(
      {
        ...options,
        tipAccounts,
        listener: listenerOf(config.sender, loaded.folder, deps.memory.mayAccept),
        // A trial starts faster.
        isWarmedUp: !isTrialOnly,
      },
      {
        upstream: upstreams.shared,
        journalFiles: [await journal(JOURNAL_NAMES[0]), await journal(JOURNAL_NAMES[1])],
        tipLedger,
        checkThreads: checkThreadsOf(config, availableParallelism()),
        identity: options.quic.enabled ? await openIdentity(keysDir, identityFile, random) : undefined,
        log,
        clock,
        random,
        registry,
        lifecycle,
        env,
        folder: loaded.folder,
        version: VERSION,
        refusals: deps.refusals,
        listenerMetrics: listenerMetrics('sender'),
        // Apart from that of customers, which clients without a token could use up.
        heldBytes: openHeldBytes(config, deps),
        docsUrl: deps.documents.docsUrlOf('sender'),
      },
    ),
  )
  const opened = opening.move()
  return { ...sender, schedule, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

/** The sender runs without its ledger where that cannot be opened, and reports it: transactions are not refused for it. */
export async function openTipLedger(
  folder: string,
  { log, clock, random, lifecycle }: BaseDeps & { readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'> },
): Promise<TipLedger | undefined> {
  const onFailure = (error: unknown) => {
    log.error({ err: error, folder }, 'the tip ledger cannot be written')
    lifecycle.degraded('sender tips', `the tip ledger cannot be written: ${messageOf(error)}`)
  }
  const onLoss = () => {
    log.error({ folder, waiting: WAITING_MAX }, 'tips are lost: too many events wait for the tip ledger')
    lifecycle.degraded('sender tips', `tips are not counted: ${WAITING_MAX} events wait for the tip ledger`)
  }
  try {
    const counter = await openCounterInWorker(folder, { log, clock, random })
    const ledger = new TipLedger({
      counter,
      clock,
      onFailure,
      onLoss,
      onRecovery() {
        log.warn({ folder, lost: ledger.lost }, 'the tip ledger is written again')
        lifecycle.recovered('sender tips')
      },
    })
    return ledger
  } catch (error) {
    onFailure(error)
    return undefined
  }
}
