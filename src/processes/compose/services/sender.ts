import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { openAppendFile } from '../../../platform/files/append.ts'
import type { StateFolder } from '../../../platform/files/state-folder.ts'
import type { ListenerMetrics } from '../../../platform/net/listener-metrics.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import { type Sender, startSender } from '../../../sender/service.ts'
import type { Upstreams } from '../../../upstreams/service.ts'
import { listenerOf } from '../config/listener.ts'
import type { Settings } from '../config/settings.ts'
import type { Deps } from '../process/deps.ts'
import { VERSION } from '../process/version.ts'
import { openIdentity, openTipAccounts } from './tip-keys.ts'

export type SenderPartDeps = Deps & {
  readonly state: StateFolder
  readonly registry: MetricsRegistry
  readonly upstreams: Upstreams
  readonly lifecycle: Lifecycle
  readonly listenerMetrics: ListenerMetrics
  readonly memory: MemoryGuard
}

/** One core is left to the loop that reads and sends; beyond this many the loop is what holds up the rest. */
const CHECK_THREADS_MAX = 4

/** The sender as the configuration wants it: its tip accounts, its identity, its journal in the state folder. */
export async function openSender({ config, loaded }: Settings, deps: SenderPartDeps): Promise<Sender> {
  const { state, upstreams, log, clock, random, registry, lifecycle, env, listenerMetrics } = deps
  await using opening = new AsyncDisposableStack()
  const { listen, tls, plaintext, enabled: _enabled, ...options } = config.sender
  const keysDir = await state.folder('keys')
  const tipAccounts = options.tipAccounts.length > 0 ? options.tipAccounts : await openTipAccounts(keysDir, random)
  const folder = await state.folder('sender')
  const journalMode = options.journalSync ? 'write-through' : 'write'
  const journal = async (name: string) => opening.use(await openAppendFile(join(folder, name), journalMode))
  const identityFile = options.quic.identity === undefined ? undefined : resolve(loaded.folder, options.quic.identity)
  const sender = opening.use(
    await startSender(
      {
        ...options,
        tipAccounts,
        listener: listenerOf({ listen, tls, plaintext }, loaded.folder, deps.memory.mayAccept),
      },
      {
        upstream: upstreams.of(undefined),
        journalFiles: [await journal('journal-0'), await journal('journal-1')],
        checkThreads: Math.min(CHECK_THREADS_MAX, Math.max(1, availableParallelism() - 1)),
        identity: options.quic.enabled ? await openIdentity(keysDir, identityFile, random) : undefined,
        log,
        clock,
        random,
        registry,
        lifecycle,
        env,
        folder: loaded.folder,
        version: VERSION,
        listenerMetrics,
      },
    ),
  )
  const opened = opening.move()
  return { ...sender, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}
