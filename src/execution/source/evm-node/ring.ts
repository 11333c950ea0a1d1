import type { Clock } from '../../../core/clock.ts'
import { ExecRecorder } from '../../../evm/event/recorder.ts'
import { encodeRingHeader, type RingGeometry, ringFileBytes } from '../../../evm/ring/layout.ts'
import { RingWriter } from '../../../evm/ring/writer.ts'
import type { FileMapper } from '../../../platform/files/mapped.ts'
import { createRingFile, type RingFileWriter } from '../../../platform/ring-file/writer.ts'

/** Holds several of the largest blocks of today's chains; the file is sparse. */
const GEOMETRY: RingGeometry = { capacity: 2 ** 18, payloadBytes: 2 ** 28, contextBytes: 0 }

/** The ring into which the events of a node's blocks are written. */
export class NodeRing implements Disposable {
  readonly #path: string
  readonly #mapper: FileMapper
  readonly #clock: Clock
  #file: RingFileWriter
  #recorder: ExecRecorder

  constructor(path: string, { mapper, clock }: { readonly mapper: FileMapper; readonly clock: Clock }) {
    this.#path = path
    this.#mapper = mapper
    this.#clock = clock
    this.#file = this.#createFile()
    this.#recorder = createRecorder(this.#file)
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

  /** Begins a new ring, so that readers report a gap to their clients. */
  replace(): void {
    this.#file[Symbol.dispose]()
    this.#file = this.#createFile()
    this.#recorder = createRecorder(this.#file)
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]()
  }

  #createFile(): RingFileWriter {
    const header = encodeRingHeader(GEOMETRY)
    return createRingFile(this.#path, { bytes: ringFileBytes(GEOMETRY), header, mapper: this.#mapper })
  }
}

function createRecorder(file: RingFileWriter): ExecRecorder {
  return new ExecRecorder(new RingWriter({ geometry: GEOMETRY }, file))
}
