import { ServiceError } from '../../../../core/error.ts'
import { type Consensus, SLOT_MS_MAX, SLOT_MS_MIN } from '../../../../localnet/options.ts'
import { parseAddressPort } from '../../../../platform/net/ip-range.ts'
import { startLocalnetProcess } from '../../../../processes/localnet.ts'
import type { CliContext, ServiceFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

/** The maximum of `localnet.traffic.tps`. */
const TPS_MAX = 1000

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

export async function localnet(this: CliContext, flags: LocalnetFlags): Promise<void> {
  // Before anything is opened: a mistake is reported as one.
  const { traffic: givenTraffic, ...given } = givenOf(flags)
  return serveUntilSignal(this, flags, ({ config, stateDir }, deps) => {
    const { enabled: _enabled, traffic, ...options } = config.localnet
    return startLocalnetProcess({ ...options, stateDir, ...given, traffic: { ...traffic, ...givenTraffic } }, deps)
  })
}

/** The options that flags set. */
function givenOf({ rpcPort, wsPort, grpcPort, shreds, accounts, slotMs, consensus, traffic, tps }: LocalnetFlags) {
  return {
    rpc: { port: portOf(rpcPort, 8899) },
    ws: { port: portOf(wsPort, 8900) },
    grpc: { port: portOf(grpcPort, 10_000) },
    ...(shreds === undefined ? {} : { shreds: { to: destinationOf(shreds) } }),
    ...(accounts === undefined ? {} : { accountsDir: accounts }),
    ...(slotMs === undefined ? {} : { slotMs: integerOf(slotMs, 'a slot length', SLOT_MS_MIN, SLOT_MS_MAX) }),
    ...(consensus === undefined ? {} : { consensus }),
    traffic: {
      ...(traffic === undefined ? {} : { enabled: traffic === 'on' }),
      ...(tps === undefined ? {} : { tps: rateOf(tps) }),
    },
  }
}

function destinationOf(given: string): string {
  if (parseAddressPort(given) !== undefined) return given
  throw new ServiceError('invalid-value', `"${given}" is not a destination: give IP:PORT, such as 127.0.0.1:20000`)
}

function portOf(given: string | undefined, byDefault: number): number {
  return given === undefined ? byDefault : integerOf(given, 'a port', 0, 65_535)
}

function integerOf(given: string, what: string, min: number, max: number): number {
  const value = Number(given)
  if (given.trim() !== '' && Number.isInteger(value) && value >= min && value <= max) return value
  throw new ServiceError('invalid-value', `"${given}" is not ${what}: give a whole number from ${min} to ${max}`)
}

function rateOf(given: string): number {
  const value = Number(given)
  if (given.trim() !== '' && value >= 0 && value <= TPS_MAX) return value
  throw new ServiceError('invalid-value', `"${given}" is not a rate: give a number from 0 to ${TPS_MAX}`)
}
