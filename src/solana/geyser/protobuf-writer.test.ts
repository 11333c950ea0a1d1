import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BinaryWriter } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { ProtobufWriter } from './protobuf-writer.ts'

type Part =
  | { kind: 'uint'; value: bigint }
  | { kind: 'small'; value: number }
  | { kind: 'int'; value: bigint }
  | { kind: 'bool'; value: boolean }
  | { kind: 'double'; value: number }
  | { kind: 'bytes'; value: Uint8Array }
  | { kind: 'text'; value: string }
  | { kind: 'packed'; value: bigint[] }
  | { kind: 'message'; value: Field[] }
type Field = { field: number; part: Part }

const u64 = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.bigInt({ min: 0n, max: 300n }))
const { message } = fc.letrec<{ message: Field[]; field: Field }>((tie) => ({
  message: fc.array(tie('field'), { maxLength: 6 }),
  field: fc.record({
    field: fc.integer({ min: 1, max: 3000 }),
    part: fc.oneof(
      { maxDepth: 4 },
      fc.record({ kind: fc.constant('uint' as const), value: u64 }),
      fc.record({ kind: fc.constant('small' as const), value: fc.maxSafeNat() }),
      fc.record({ kind: fc.constant('int' as const), value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
      fc.record({ kind: fc.constant('bool' as const), value: fc.boolean() }),
      fc.record({ kind: fc.constant('double' as const), value: fc.double() }),
      fc.record({ kind: fc.constant('bytes' as const), value: fc.uint8Array({ maxLength: 300 }) }),
      fc.record({ kind: fc.constant('text' as const), value: fc.string({ unit: 'binary', maxLength: 200 }) }),
      fc.record({ kind: fc.constant('packed' as const), value: fc.array(u64, { maxLength: 40 }) }),
      fc.record({ kind: fc.constant('message' as const), value: tie('message') }),
    ) as fc.Arbitrary<Part>,
  }),
}))

test('writes the same bytes as another encoder', (t) => {
  const writer = new ProtobufWriter()
  checkProperty(
    t,
    fc.property(message, (fields) => {
      write(writer, fields)
      assert.deepEqual(Buffer.from(writer.take()), Buffer.from(writeApart(fields, new BinaryWriter()).finish()))
    }),
    500,
    20_000,
  )
})

test('later messages do not change earlier ones, also across slabs and above the slab size', () => {
  const writer = new ProtobufWriter()
  const taken: { size: number; bytes: Uint8Array }[] = []
  for (const size of [10, 60_000, 10_000, 200_000, 5, 70_000]) {
    writer.message(1, () => writer.message(2, () => writer.presentBytes(3, new Uint8Array(size).fill(size & 255))))
    taken.push({ size, bytes: writer.take() })
  }
  for (const { size, bytes } of taken) {
    const expected = writeApart(
      [{ field: 1, part: { kind: 'message', value: [{ field: 2, part: inner(size) }] } }],
      new BinaryWriter(),
    ).finish()
    assert.ok(Buffer.from(expected).equals(bytes), `size ${size}`)
  }
})

function inner(size: number): Part {
  return {
    kind: 'message',
    value: [{ field: 3, part: { kind: 'bytes', value: new Uint8Array(size).fill(size & 255) } }],
  }
}

function write(writer: ProtobufWriter, fields: readonly Field[]): void {
  for (const { field, part } of fields) {
    if (part.kind === 'uint') writer.uint(field, part.value)
    else if (part.kind === 'small') writer.uint(field, part.value)
    else if (part.kind === 'int') writer.int(field, part.value)
    else if (part.kind === 'bool') writer.bool(field, part.value)
    else if (part.kind === 'double') writer.double(field, part.value)
    else if (part.kind === 'bytes' && field % 2 === 0) writer.bytes(field, part.value)
    else if (part.kind === 'bytes') writeDirectly(writer, field, part.value)
    else if (part.kind === 'text') writer.text(field, part.value)
    else if (part.kind === 'packed') writer.packedUints(field, part.value)
    else writer.message(field, () => write(writer, part.value))
  }
}

/** By the caller, in more room than it needs. */
function writeDirectly(writer: ProtobufWriter, field: number, value: Uint8Array): void {
  if (value.length === 0) return
  writer.lengthPrefix(field, value.length)
  const at = writer.reserve(value.length + 20)
  writer.buffer.set(value, at)
  writer.advance(at + value.length)
}

/** The same with the library's writer; default values are omitted explicitly. */
function writeApart(fields: readonly Field[], writer: BinaryWriter): BinaryWriter {
  for (const { field, part } of fields) {
    if (part.kind === 'uint' && part.value !== 0n) writer.tag(field, 0).uint64(part.value)
    else if (part.kind === 'small' && part.value !== 0) writer.tag(field, 0).uint64(part.value)
    else if (part.kind === 'int' && part.value !== 0n) writer.tag(field, 0).int64(part.value)
    else if (part.kind === 'bool' && part.value) writer.tag(field, 0).bool(true)
    else if (part.kind === 'double' && part.value !== 0) writer.tag(field, 1).double(part.value)
    else if (part.kind === 'bytes' && part.value.length > 0) writer.tag(field, 2).bytes(part.value)
    else if (part.kind === 'text' && part.value.length > 0) writer.tag(field, 2).string(part.value)
    else if (part.kind === 'packed' && part.value.length > 0) {
      writer.tag(field, 2).fork()
      for (const value of part.value) writer.uint64(value)
      writer.join()
    } else if (part.kind === 'message') {
      writer.tag(field, 2).fork()
      writeApart(part.value, writer)
      writer.join()
    }
  }
  return writer
}
