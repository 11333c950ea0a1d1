import { challengeCodeOf } from '../../access/provisioning/destinations.ts'
import type { Destination } from '../../access/store/model.ts'
import { messageOf } from '../../core/error.ts'
import { canonicalIp } from '../../platform/net/ip-range.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { LeaseDecisions } from './leases.ts'

/** Sends challenge packets to unproven destinations and marks a destination as proven when it echoes its code. */
export type Challenger = {
  /** Replaces the list of open challenges; a challenge that stays keeps its count of packets sent. */
  setChallenges(challenges: LeaseDecisions['challenges']): void
  /** Sends the challenge packets that are due. */
  tick(nowMs: number): void
  /** Handles a packet that a destination sent back. */
  receive(packet: Uint8Array, from: { readonly ip: string; readonly port: number }): void
}

export type ChallengerDeps = {
  readonly log: Logger
  readonly key: Uint8Array
  send(packet: Uint8Array, to: { readonly ip: string; readonly port: number }): void
  /** Stores that the destination is proven. */
  prove(subscriptionId: string, code: string): Promise<void>
  onSent(): void
}

/**
 * An unproven address gets at most three packets of less than 64 bytes each: the amplification limit of RFC 9000 for addresses that are not
 * validated. Their send times count from when the destination was set, so a process that restarts does not repeat them.
 */
export const PROBES = 3
export const PROBE_EVERY_MS = 5000
const PACKET_BYTES_MAX = 64
const PREFIX = 'sluice-challenge 1 '

export function challengePacket(code: string): Uint8Array {
  return new TextEncoder().encode(`${PREFIX}${code}\n`)
}

/** The code of a challenge packet; undefined for any other packet. */
export function readChallenge(packet: Uint8Array): string | undefined {
  if (packet.length > PACKET_BYTES_MAX) return undefined
  const match = /^sluice-challenge 1 ([0-9a-f]{32})\s*$/.exec(new TextDecoder('latin1').decode(packet))
  return match?.[1]
}

type OpenChallenge = {
  readonly subscriptionId: string
  readonly ip: string
  readonly port: number
  readonly setAt: number
  probesSent: number
  isProving: boolean
}

export function createChallenger({ log, key, send, prove, onSent }: ChallengerDeps): Challenger {
  let open = new Map<string, OpenChallenge>()
  /** A changed destination is another object. */
  const codes = new WeakMap<Destination, string>()

  function codeOf(destination: Destination): string {
    const code = codes.get(destination) ?? challengeCodeOf(key, destination)
    codes.set(destination, code)
    return code
  }

  async function storeProof(code: string, challenge: OpenChallenge): Promise<void> {
    challenge.isProving = true
    try {
      await prove(challenge.subscriptionId, code)
      log.info({ subscription: challenge.subscriptionId }, 'destination proven')
    } catch (error) {
      challenge.isProving = false
      log.warn(
        { subscription: challenge.subscriptionId, reason: messageOf(error) },
        'storing the proof of a destination failed',
      )
    }
  }

  return {
    setChallenges(challenges) {
      const next = new Map<string, OpenChallenge>()
      for (const { subscriptionId, destination } of challenges) {
        const { port, setAt } = destination
        // As the system reports the source of a packet.
        const ip = canonicalIp(destination.ip)
        const code = codeOf(destination)
        next.set(code, open.get(code) ?? { subscriptionId, ip, port, setAt, probesSent: 0, isProving: false })
      }
      open = next
    },
    tick(nowMs) {
      for (const [code, challenge] of open) {
        const due = Math.floor((nowMs - challenge.setAt) / PROBE_EVERY_MS) + 1
        if (due < 1 || due > PROBES || challenge.probesSent >= due) continue
        challenge.probesSent = due
        send(challengePacket(code), challenge)
        onSent()
      }
    },
    receive(packet, from) {
      const code = readChallenge(packet)
      const challenge = code === undefined ? undefined : open.get(code)
      if (code === undefined || challenge === undefined || challenge.isProving) return
      if (from.ip === challenge.ip && from.port === challenge.port) void storeProof(code, challenge)
    },
  }
}
