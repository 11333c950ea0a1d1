import { initialSecrets, nextSecret, PacketKeys, type Seal, type Secret } from './keys.ts'
import { type Level, type OpenedPacket, openPacket, type PacketHead } from './packet.ts'

type Pair = { readonly send: PacketKeys; receive: PacketKeys }

/** The keys of a connection by level, and their update on the application level (RFC 9001 section 6). */
export class KeyRing {
  readonly #seal: Seal | undefined
  readonly #levels: Partial<Record<Level, Pair>> = {}
  #secrets: { client: Secret; server: Secret } | undefined
  /** Keys of the previous phase, for reordered packets. */
  #old: { readonly keys: PacketKeys; readonly untilMs: number } | undefined
  #next: PacketKeys | undefined
  phase: 0 | 1 = 0
  updates = 0
  /** The first packet received in this phase; infinite while the peer has not followed an update of ours. */
  #phaseFrom = 0

  constructor(seal?: Seal) {
    this.#seal = seal
  }

  has(level: Level): boolean {
    return this.#levels[level] !== undefined
  }

  send(level: Level): PacketKeys | undefined {
    return this.#levels[level]?.send
  }

  installInitial(destination: Uint8Array): void {
    const { client, server } = initialSecrets(destination)
    this.#levels.initial = { send: new PacketKeys(client, this.#seal), receive: new PacketKeys(server) }
  }

  install(level: Level, secrets: { client: Secret; server: Secret }): void {
    this.#levels[level] = { send: new PacketKeys(secrets.client, this.#seal), receive: new PacketKeys(secrets.server) }
    if (level === 'application') this.#secrets = { ...secrets }
  }

  discard(level: Level): void {
    delete this.#levels[level]
  }

  open(
    datagram: Uint8Array,
    head: Extract<PacketHead, { kind: 'protected' }>,
    { largest, nowMs, keepOldMs }: { largest: number; nowMs: number; keepOldMs: number },
  ): OpenedPacket | undefined {
    const pair = this.#levels[head.level]
    if (pair === undefined) return undefined
    if (head.level !== 'application')
      return openPacket(datagram, head, { headerKeys: pair.receive, keysFor: () => pair.receive, largest })
    const opened = openPacket(datagram, head, {
      headerKeys: pair.receive,
      largest,
      keysFor: (phase, packetNumber) => {
        if (phase === this.phase) return pair.receive
        if (packetNumber < this.#phaseFrom)
          return this.#old !== undefined && nowMs < this.#old.untilMs ? this.#old.keys : undefined
        return this.#nextKeys(pair)
      },
    })
    if (opened === undefined) return undefined
    if (opened.keyPhase !== this.phase && opened.packetNumber >= this.#phaseFrom) {
      // The peer has updated its keys; update both directions.
      this.#turn(nowMs + keepOldMs)
      this.#phaseFrom = opened.packetNumber
    } else if (opened.keyPhase === this.phase && opened.packetNumber < this.#phaseFrom)
      this.#phaseFrom = opened.packetNumber
    return opened
  }

  /** Starts a key update. */
  update(oldUntilMs: number): void {
    if (this.#secrets === undefined) return
    this.#turn(oldUntilMs)
    this.#phaseFrom = Number.POSITIVE_INFINITY
  }

  #nextKeys(pair: Pair): PacketKeys {
    const { server } = this.#secrets as { server: Secret }
    this.#next ??= pair.receive.updated(nextSecret(server))
    return this.#next
  }

  #turn(oldUntilMs: number): void {
    const pair = this.#levels.application as Pair
    const secrets = this.#secrets as { client: Secret; server: Secret }
    const receive = this.#nextKeys(pair)
    this.#secrets = { client: nextSecret(secrets.client), server: nextSecret(secrets.server) }
    this.#old = { keys: pair.receive, untilMs: oldUntilMs }
    this.#levels.application = { send: pair.send.updated(this.#secrets.client), receive }
    this.#next = undefined
    this.phase = this.phase === 0 ? 1 : 0
    this.updates += 1
  }
}
