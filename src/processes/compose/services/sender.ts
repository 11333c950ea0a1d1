import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { openAppendFile } from '../../../platform/files/append.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import { type Sender, startSender } from '../../../sender/service.ts'
import type { Upstreams } from '../../../upstreams/service.ts'
import { listenerOf } from '../config/listener.ts'
import type { Settings } from '../config/settings.ts'
import type { ProcessContext } from '../process/open-process.ts'
import { VERSION } from '../process/version.ts'
import { openIdentity, openTipAccounts } from './tip-keys.ts'

export type SenderPartDeps = ProcessContext<'sender'> & {
  readonly upstreams: Upstreams
  readonly memory: MemoryGuard
}

/** One core is reserved for the event loop; beyond this many threads the event loop is the bottleneck. */
const CHECK_THREADS_MAX = 4

/** TPU Sender as the `sender` section of the configuration sets it up, with its keys and journal in the state folder. */
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
        listenerMetrics: listenerMetrics('sender'),
      },
    ),
  )
  const opened = opening.move()
  return { ...sender, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

export function senderMethods(sender: Sender | undefined): ControlMethods {
  return { 'tip-stats': () => ({ ...sender?.stats(), ways: sender?.paths() ?? [] }) }
}
