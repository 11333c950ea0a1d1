/**
 * A UDP port that takes packets in batches and sends the same packets on to many places. Packets stand in an arena: they are received
 * into its slots, and looked at there. There are two ways of doing it with one face: `sendmmsg` calls the
 * system for whole batches, `dgram` is Node's own socket, about a tenth as fast, for machines where foreign functions do not load.
 */
export type UdpPort = Disposable & {
  readonly engine: UdpEngine
  readonly address: { readonly host: string; readonly port: number }
  readonly arena: PacketArena
  /** What the kernel granted as receive buffer. */
  readonly receiveBufferBytes: number
  /** Hands batches over until `onTick` says stop. Ticks come every few milliseconds, with traffic or without. */
  run(handlers: UdpHandlers): Promise<void>
  /** A connected socket to one literal address. */
  connect(to: { readonly ip: string; readonly port: number }): UdpDestination
  /**
   * Lays out what the next sends carry: slots of the arena in two groups, each of one length, because one call can only be cut into equal
   * packets. `slots` has the first group, then the second.
   */
  stage(slots: Uint8Array, first: StagedGroup, second: StagedGroup): void
  /** Packets the kernel threw away because they came faster than they were taken, since the port was opened. */
  overruns(): number
}

export const UDP_ENGINES = ['sendmmsg', 'dgram'] as const
export type UdpEngine = (typeof UDP_ENGINES)[number]

export type StagedGroup = { readonly count: number; readonly bytes: number }

export type PacketArena = {
  readonly bytes: Uint8Array
  /** The same bytes as 32-bit words. A slot begins at `slot * SLOT_BYTES`, so its words are aligned. */
  readonly words: Int32Array
  readonly lengths: Int32Array
  /** Which entry of the allowed sources the packet of a slot came from; -1 for none. */
  readonly sources: Int8Array
}

export type UdpHandlers = {
  /** The first `count` slots hold new packets. They are valid until this returns. */
  onBatch(count: number): void
  /** Returns false to end the run. */
  onTick(): boolean
}

/** Why packets did not leave, or what the network said of earlier ones. */
export type UdpFault = 'refused' | 'unreachable' | 'buffer-full' | 'too-big' | 'other'

export type UdpDestination = {
  /** Sends so many of each staged group and returns how many left. */
  send(first: number, second: number): number
  /** What sends met since the last call; asking clears it. */
  takeFault(): UdpFault | undefined
  /** Asks the system for an answer of the network that no send has met yet; `takeFault` then tells it. */
  poll(): void
  close(): void
}

export type UdpPortOptions = {
  readonly listen: { readonly host: string; readonly port: number }
  /** Addresses and networks whose packets count; at most 127. */
  readonly sources: readonly string[]
  readonly receiveBufferBytes: number
  readonly sendBufferBytes: number
  /** Undefined takes the fastest that works here. */
  readonly engine?: UdpEngine | undefined
}

/**
 * Slots of an arena: as many as one call takes or sends. The kernel cuts at most 65,507 bytes into packets, which is 53 of the longest shreds;
 * larger batches than this gain little.
 */
export const BATCH_PACKETS = 48
/** Room for one packet. What is longer is cut, which no shred is. */
export const SLOT_BYTES = 2048
/** How long a quiet port sleeps between two ticks. */
export const TICK_MS = 10
