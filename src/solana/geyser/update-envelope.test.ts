import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SubscribeUpdate, SubscribeUpdateSchema } from '../gen/geyser_pb.ts'
import { decodeMessage } from './protobuf.ts'
import { ProtobufWriter } from './protobuf-writer.ts'
import { encodeFilterName, writeCreatedAt } from './update-envelope.ts'

const CREATED_AT_FIELD = 11

test('names of filters and the time of an update are read back by a decoder', () => {
  const names = ['', 'a', 'ü'.repeat(63), 'n'.repeat(127), 'n'.repeat(128), 'n'.repeat(70_000)]
  const encoded = names.map(encodeFilterName)
  const update = decodeMessage(SubscribeUpdateSchema, Buffer.concat(encoded)) as SubscribeUpdate
  assert.deepEqual(update.filters, names)
  for (const [unixMs, seconds, nanos] of [
    [0, 0n, 0],
    [1_800_000_000_123, 1_800_000_000n, 123_000_000],
    [999.5, 0n, 999_500_000],
  ] as const) {
    const writer = new ProtobufWriter()
    writeCreatedAt(writer, CREATED_AT_FIELD, unixMs)
    const { createdAt } = decodeMessage(SubscribeUpdateSchema, writer.take()) as SubscribeUpdate
    assert.deepEqual([createdAt?.seconds, createdAt?.nanos], [seconds, nanos])
  }
})
