import type { Clock } from '../../../core/clock.ts'
import { ExecRecorder } from '../../../evm/event/recorder.ts'
import { encodeRingHeader, type RingGeometry, ringFileBytes } from '../../../evm/ring/layout.ts'
import { RingWriter } from '../../../evm/ring/writer.ts'
import type { FileMapper } from '../../../platform/files/mapped.ts'
import { createRingFile, type RingFileWriter } from '../../../platform/ring-file/writer.ts'

/** Holds several of the largest blocks of today's chains; the file is sparse. */
const GEOMETRY: RingGeometry = { capacity: 2 ** 18, payloadBytes: 2 ** 28, contextBytes: 0 }

/** Sequence numbers left out for skipped blocks: so few that readers still have the events before them. */
const SKIPPED_MAX = 4096

/** The ring into which the events of a node's blocks are written. */
export class NodeRing implements Disposable {
  readonly #clock: Clock
  readonly #file: RingFileWriter
  readonly #writer: RingWriter
  readonly #recorder: ExecRecorder

  constructor(path: string, { mapper, clock }: { readonly mapper: FileMapper; readonly clock: Clock }) {
    this.#clock = clock
    const header = encodeRingHeader(GEOMETRY)
    this.#file = createRingFile(path, { bytes: ringFileBytes(GEOMETRY), header, mapper })
    this.#writer = new RingWriter({ geometry: GEOMETRY }, this.#file)
    this.#recorder = new ExecRecorder(this.#writer)
  }

  /** Writes the events that `add` records, all of them or none. Their time is now, or `notAfterNs` where that is earlier. */
  record(add: (recorder: ExecRecorder, timeNs: bigint) => void, notAfterNs?: bigint): void {
    try {
      const nowNs = BigInt(Math.floor(this.#clock.nowMs() * 1000)) * 1000n
      add(this.#recorder, notAfterNs !== undefined && notAfterNs < nowNs ? notAfterNs : nowNs)
    } catch (error) {
      // A block that cannot be decoded is requested again, so its events are discarded.
      this.#recorder.discard()
      throw error
    }
    this.#recorder.flush()
  }

  /** Blocks are not recorded: leaves out a sequence number for each, so that readers report a gap to their clients. */
  skip(blocks: number): void {
    this.#writer.leaveOut(Math.min(blocks, SKIPPED_MAX))
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]()
  }
}
