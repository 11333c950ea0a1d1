import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { type LocalnetOptionsInput, parseLocalnetOptions } from '../localnet/options.ts'
import { type Localnet, startLocalnet } from '../localnet/service.ts'
import { takeInstanceLock } from '../platform/files/instance-lock.ts'
import { openStateFolder } from '../platform/files/state-folder.ts'
import { openControlSocket } from '../platform/process/control-socket.ts'
import { createLifecycle, type Lifecycle } from '../platform/process/lifecycle.ts'
import { announceProcess } from '../platform/process/running-processes.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import { openUdpSender } from '../platform/udp/sender.ts'
import { localnetMethods } from './compose/services/localnet-methods.ts'

export type LocalnetProcessDeps = {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly env: NodeJS.ProcessEnv
}

export type LocalnetProcess = { readonly lifecycle: Lifecycle; readonly localnet: Localnet }

/** How long open streams get to finish. */
const DRAIN_MS = 2000

/** The embedded chain as a process of its own. With a state folder it continues from the `localnet/` there and has a control socket. */
export async function startLocalnetProcess(
  input: LocalnetOptionsInput & { readonly stateDir?: string | undefined },
  deps: LocalnetProcessDeps,
): Promise<LocalnetProcess> {
  const { log, clock, random, env } = deps
  // A development chain has no load balancer in front, so it skips the lame-duck time.
  const lifecycle = createLifecycle({ lameDuckMs: 0, deadlineMs: 10_000 }, { clock, log })
  await using opening = new AsyncDisposableStack()
  const state = input.stateDir === undefined ? undefined : await openStateFolder(input.stateDir)
  if (state) opening.use(takeInstanceLock(state))
  const chainDir = await state?.folder('localnet')
  const options = parseLocalnetOptions({ ...input, stateDir: chainDir })
  const localnet = opening.use(await startLocalnet(options, { log, clock, random, openUdpSender }))
  if (state) {
    const methods = localnetMethods(localnet)
    opening.use(await openControlSocket(state.file('control.sock'), { log: log.child({ part: 'control' }), methods }))
    // Without a config file: a command about the file means the process that serves it.
    opening.use(announceProcess({ pid: process.pid, state: state.path, config: null, isChain: true }, env))
  }

  const opened = opening.move()
  lifecycle.defer('services', () => opened.disposeAsync())
  lifecycle.defer('localnet', (deadlineMs) => localnet.drain(Math.min(deadlineMs, DRAIN_MS)))
  lifecycle.started()
  for (const { name, address } of localnet.addresses) log.info({ service: name, address }, 'listening')
  log.info({ slot: localnet.chain.slot('processed'), genesisHash: localnet.chain.genesisHash }, 'started')
  return { lifecycle, localnet }
}
