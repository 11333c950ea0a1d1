/**
 * A UDP port that receives packets in batches and forwards them to many destinations. Packets are received into the cells of an arena and read there.
 * There are two engines with one interface: `sendmmsg` calls the system for whole batches; `dgram` is Node's own socket, about a tenth as fast, for
 * machines where the foreign-function interface does not load.
 */
export type UdpPort = Disposable & {
  readonly engine: UdpEngine
  readonly address: { readonly host: string; readonly port: number }
  readonly arena: PacketArena
  /** The receive buffer that the kernel granted. */
  readonly receiveBufferBytes: number
  /** Delivers batches until `onTick` returns false. Ticks come every few milliseconds, with or without traffic. */
  run(handlers: UdpHandlers): Promise<void>
  /** Whether the arrivals in the arena are the kernel's time of receipt. Otherwise they are the time at which the packet was read from the socket. */
  readonly hasKernelTimes: boolean
  /** Reads the clock of the arrivals into `arena.timeMicros`. */
  readTime(): void
  /** A connected socket to one literal address. */
  connect(to: { readonly ip: string; readonly port: number }): UdpDestination
  /**
   * Sets what the next sends carry: cells of the arena in two groups, each with packets of one length, because the kernel segments a send into equal
   * packets. `cells` has the first group, then the second.
   */
  stage(cells: Uint16Array, first: StagedGroup, second: StagedGroup): void
  /** Packets that the kernel dropped because the receive buffer was full, since the port was opened. */
  overruns(): number
}

export const UDP_ENGINES = ['sendmmsg', 'dgram'] as const
export type UdpEngine = (typeof UDP_ENGINES)[number]

export type StagedGroup = { readonly count: number; readonly bytes: number }

export type PacketArena = {
  readonly bytes: Uint8Array
  /** The same bytes as 32-bit words. A cell begins at `cell * CELL_BYTES`, so its words are aligned. */
  readonly words: Int32Array
  readonly lengths: Int32Array
  /** Index of the allowed source that the packet of a cell came from; -1 for none. */
  readonly sources: Int8Array
  /** Arrival of the packet of a cell in microseconds, on a clock that only differences can be taken of. */
  readonly arrivals: Float64Array
  /** The one element is the last time read: an array, because a number that a function returns can be an object. */
  readonly timeMicros: Float64Array
}

export type UdpHandlers = {
  /** The first `count` cells hold new packets. They are valid until this returns. */
  onBatch(count: number): void
  /** Returns false to end the run. */
  onTick(): boolean
  /** Whether another thread may call for `onWake` through the file descriptor `wakeFd`. */
  isWaiting?(): boolean
  /** Whether `onIdle` is to be called before the thread sleeps. */
  isIdleDue?: (() => boolean) | undefined
  /** Work that can wait until no packet does. */
  onIdle?: (() => void) | undefined
  /** Called while `isWaiting`, at least every few milliseconds, and at once when `wakeFd` was written to. */
  onWake?(): void
}

/** Why packets were not sent, or the network error for earlier ones. */
export type UdpFault = 'refused' | 'unreachable' | 'buffer-full' | 'too-big' | 'other'

export type UdpDestination = {
  /** Sends so many of each staged group and returns how many were sent. */
  send(first: number, second: number): number
  /** The last fault since the previous call, which it clears. */
  takeFault(): UdpFault | undefined
  /** Fetches a network error that no send has returned yet; `takeFault` then returns it. */
  poll(): void
  close(): void
}

export type UdpPortOptions = {
  readonly listen: { readonly host: string; readonly port: number }
  /** Addresses and networks whose packets are accepted; at most 127. */
  readonly sources: readonly string[]
  readonly receiveBufferBytes: number
  readonly sendBufferBytes: number
  /** The fastest that works on this machine by default. */
  readonly engine?: UdpEngine | undefined
  /** Cells of the arena beyond BATCH_PACKETS, for packets that are to stay. */
  readonly spareCells?: number | undefined
  /** An eventfd(2) that ends the sleep of `run`; without effect with the engine `dgram`. */
  readonly wakeFd?: number | undefined
  /**
   * How long the thread looks for the next packet before it sleeps, which also is the kernel's busy polling of the device (SO_BUSY_POLL). Without effect
   * with the engine `dgram`.
   */
  readonly busyPollMicros?: number | undefined
}

/**
 * Cells of an arena: as many as one call receives or sends. The kernel segments at most 65,507 bytes, which is 53 of the longest shreds; larger batches
 * gain little.
 */
export const BATCH_PACKETS = 48
/** Space for one packet. A longer one is truncated, which no shred is. */
export const CELL_BYTES = 2048
/** How often a destination that could not be connected is tried again. */
export const RECONNECT_MS = 1000
/** How long a port without traffic sleeps between two ticks. */
export const TICK_MS = 10
