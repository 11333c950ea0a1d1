import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { constants, inflateRawSync } from 'node:zlib'
import { chooseDeflateOffer, DEFLATE_BYTES_MAX, DEFLATE_BYTES_MIN, deflateFrame } from './deflate.ts'
import { encodeTextFrame, framePayload } from './frame.ts'

describe('offers of permessage-deflate', () => {
  const accepted: readonly [string, string][] = [
    ['permessage-deflate', 'permessage-deflate'],
    // Chromium, ws and undici.
    ['permessage-deflate; client_max_window_bits', 'permessage-deflate; client_max_window_bits=12'],
    // Python's websockets.
    [
      'permessage-deflate; server_max_window_bits=12; client_max_window_bits=12',
      'permessage-deflate; server_max_window_bits=12; client_max_window_bits=12',
    ],
    ['permessage-deflate; server_max_window_bits=15', 'permessage-deflate; server_max_window_bits=12'],
    ['permessage-deflate; client_max_window_bits=9', 'permessage-deflate; client_max_window_bits=9'],
    ['permessage-deflate; client_max_window_bits="10"', 'permessage-deflate; client_max_window_bits=10'],
    [
      'permessage-deflate; server_no_context_takeover; client_no_context_takeover',
      'permessage-deflate; server_no_context_takeover; client_no_context_takeover',
    ],
    ['PerMessage-Deflate', 'permessage-deflate'],
    ['x-webkit-deflate-frame, permessage-deflate', 'permessage-deflate'],
    // The first one asks for a smaller window than shared frames have.
    ['permessage-deflate; server_max_window_bits=10, permessage-deflate', 'permessage-deflate'],
    [
      'permessage-deflate; unknown, permessage-deflate; client_max_window_bits=8',
      'permessage-deflate; client_max_window_bits=8',
    ],
  ]
  for (const [offer, chosen] of accepted)
    test(`accepts ${offer}`, () => assert.equal(chooseDeflateOffer(offer), chosen))

  const declined = [
    '',
    'permessage-bzip2',
    'permessage-deflate; server_max_window_bits=11',
    'permessage-deflate; server_max_window_bits',
    'permessage-deflate; server_max_window_bits=16',
    'permessage-deflate; server_max_window_bits=08',
    'permessage-deflate; client_max_window_bits=7',
    'permessage-deflate; client_max_window_bits=12; client_max_window_bits=12',
    'permessage-deflate; server_no_context_takeover=1',
    'permessage-deflate; unknown',
    'permessage-deflate; =',
    'permessage-deflate;;',
  ]
  for (const offer of declined)
    test(`declines ${JSON.stringify(offer)}`, () => assert.equal(chooseDeflateOffer(offer), undefined))

  test('without the header there is none', () => assert.equal(chooseDeflateOffer(undefined), undefined))
})

describe('a compressed frame', () => {
  /** As a client does it: with the tail of the flush, and with an empty window of the agreed size. */
  function inflated(frame: Buffer): string {
    const packed = Buffer.concat([framePayload(frame), Buffer.of(0, 0, 0xff, 0xff)])
    return inflateRawSync(packed, { windowBits: 12, finishFlush: constants.Z_SYNC_FLUSH }).toString()
  }

  test('has RSV1, one part, and the text, in each form of its length', () => {
    for (const count of [60, 500, 2000, 7500]) {
      const text = JSON.stringify(Array.from({ length: count }, (_, at) => ({ address: `0x${at % 97}`, count: at })))
      const frame = deflateFrame(encodeTextFrame(text)) ?? assert.fail(`${text.length} bytes are not compressed`)
      assert.equal(frame[0], 0xc1)
      assert.equal(inflated(frame), text)
    }
  })

  test('is not made of small, large and incompressible messages', () => {
    const of = (bytes: number) => deflateFrame(encodeTextFrame('x'.repeat(bytes)))
    assert.equal(of(DEFLATE_BYTES_MIN - 1), undefined)
    assert.ok(of(DEFLATE_BYTES_MIN))
    assert.ok(of(DEFLATE_BYTES_MAX))
    assert.equal(of(DEFLATE_BYTES_MAX + 1), undefined)
    const digits = Array.from({ length: 2000 }, (_, at) => ((at * 2_654_435_761) >>> 0).toString(36)).join('')
    assert.equal(deflateFrame(encodeTextFrame(digits)), undefined)
  })
})
