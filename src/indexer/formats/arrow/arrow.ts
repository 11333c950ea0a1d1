import { ByteWriter } from '../byte-writer.ts'
import type { TypedColumn } from '../value-type.ts'
import type { BatchFormat } from '../writer.ts'
import { arrowBody } from './arrow-body.ts'
import { arrowField } from './arrow-schema.ts'
import { type FlatValue, flatbuffer, i16, i64, structs, table, u8, vector } from './flatbuffer.ts'

const VERSION_5 = 4
const [SCHEMA, RECORD_BATCH] = [1, 3] as const
const CONTINUATION = 0xffff_ffff
const MAGIC = 'ARROW1'

/**
 * Apache Arrow's IPC format: as a stream of record batches, or as a file, which is the same stream with a list of its batches at the end.
 * Format: https://arrow.apache.org/docs/format/Columnar.html
 */
export function arrow(columns: readonly TypedColumn[], form: 'stream' | 'file'): BatchFormat {
  const schema = table(i16(0), vector(columns.map(({ name, type }) => arrowField(name, type))))
  /** Where the record batches are in the file: offset, length of the metadata, length of the body. */
  const blocks: number[] = []
  let offset = 0

  function counted(bytes: Uint8Array): Uint8Array {
    offset += bytes.length
    return bytes
  }

  return {
    *head() {
      if (form === 'file') yield counted(Buffer.from(`${MAGIC}\0\0`))
      yield counted(message(SCHEMA, schema, 0))
    },
    *batch(batches, rowCount) {
      const { nodes, buffers, body } = yield* arrowBody(batches)
      const header = table(i64(rowCount), structs(nodes, 2), structs(buffers, 2))
      const metadata = message(RECORD_BATCH, header, body.length)
      blocks.push(offset, metadata.length, body.length)
      yield counted(metadata)
      yield counted(body)
    },
    *tail() {
      const end = new ByteWriter()
      end.u32(CONTINUATION)
      end.u32(0)
      if (form === 'file') {
        // Footer: version, schema, dictionaries, record batches. The length of the metadata has 32 bits, and 32 more for alignment.
        const footer = flatbuffer(table(i16(VERSION_5), schema, undefined, structs(blocks, 3)))
        end.bytes(footer)
        end.u32(footer.length)
        end.bytes(Buffer.from(MAGIC))
      }
      yield end.take()
    },
  }
}

/** A message with its prefix; its length is a multiple of 8. */
function message(kind: number, header: FlatValue, bodyBytes: number): Buffer {
  const metadata = flatbuffer(table(i16(VERSION_5), u8(kind), header, i64(bodyBytes)))
  const out = new ByteWriter(metadata.length + 8)
  out.u32(CONTINUATION)
  out.u32(metadata.length)
  out.bytes(metadata)
  return out.take()
}
