import { ServiceError } from '../../../../core/error.ts'
import { type Consensus, SLOT_MS_MAX, SLOT_MS_MIN } from '../../../../localnet/options.ts'
import { parseAddressPort } from '../../../../platform/net/ip-range.ts'
import { startLocalnetProcess } from '../../../../processes/localnet.ts'
import type { CliContext, ServiceFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

export type LocalnetFlags = ServiceFlags & {
  readonly rpcPort?: string
  readonly wsPort?: string
  readonly grpcPort?: string
  readonly shreds?: string
  readonly accounts?: string
  readonly slotMs?: string
  readonly consensus?: Consensus
  readonly traffic?: 'on' | 'off'
  readonly tps?: string
}

export function localnet(this: CliContext, flags: LocalnetFlags): Promise<void> {
  return serveUntilSignal(this, flags, ({ config, stateDir }, deps) => {
    const { enabled: _enabled, ...options } = config.localnet
    return startLocalnetProcess(
      {
        ...options,
        stateDir,
        rpc: { port: portOf(flags.rpcPort, 8899) },
        ws: { port: portOf(flags.wsPort, 8900) },
        grpc: { port: portOf(flags.grpcPort, 10_000) },
        ...(flags.shreds === undefined ? {} : { shreds: { to: destinationOf(flags.shreds) } }),
        ...(flags.accounts === undefined ? {} : { accountsDir: flags.accounts }),
        ...(flags.slotMs === undefined
          ? {}
          : { slotMs: numberOf(flags.slotMs, 'a slot length', SLOT_MS_MIN, SLOT_MS_MAX) }),
        ...(flags.consensus === undefined ? {} : { consensus: flags.consensus }),
        traffic: {
          enabled: flags.traffic === undefined ? options.traffic.enabled : flags.traffic === 'on',
          tps: flags.tps === undefined ? options.traffic.tps : numberOf(flags.tps, 'a rate', 0, 1000),
        },
      },
      deps,
    )
  })
}

function destinationOf(given: string): string {
  if (parseAddressPort(given) !== undefined) return given
  throw new ServiceError('invalid-value', `"${given}" is not a destination: give IP:PORT, such as 127.0.0.1:20000`)
}

function portOf(given: string | undefined, byDefault: number): number {
  return given === undefined ? byDefault : numberOf(given, 'a port', 0, 65_535)
}

function numberOf(given: string, what: string, min: number, max: number): number {
  const value = Number(given)
  if (given.trim() !== '' && value >= min && value <= max) return value
  throw new ServiceError('invalid-value', `"${given}" is not ${what}: give a number from ${min} to ${max}`)
}
