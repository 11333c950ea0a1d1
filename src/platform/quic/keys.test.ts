import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { expandLabel, hkdfExtract, initialSecrets, nextSecret, PacketKeys, retryTag } from './keys.ts'
import { openPacket, type PacketHead, readPacketHeads, writePacket } from './packet.ts'

/** RFC 9001 appendix A. */
const DESTINATION = bytes('8394c8f03e515708')
const NOTHING = new Uint8Array(0)

function bytes(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'))
}
const hex = (given: Uint8Array) => Buffer.from(given).toString('hex')

describe('RFC 9001 appendix A', () => {
  const { client, server } = initialSecrets(DESTINATION)

  test('A.1: initial secrets and keys', () => {
    assert.equal(hex(client), 'c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea')
    assert.equal(hex(server), '3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b')
    assert.equal(hex(expandLabel(client, 'quic key', NOTHING, 16)), '1f369613dd76d5467730efcbe3b1a22d')
    assert.equal(hex(expandLabel(client, 'quic iv', NOTHING, 12)), 'fa044b2f42a3fd3b46fb255c')
    assert.equal(hex(expandLabel(client, 'quic hp', NOTHING, 16)), '9f50449e04a0e810283a1e9933adedd2')
    assert.equal(hex(expandLabel(server, 'quic key', NOTHING, 16)), 'cf3a5331653c364c88f0f379b6067e37')
    assert.equal(hex(expandLabel(server, 'quic iv', NOTHING, 12)), '0ac1493ca1905853b0bba03e')
    assert.equal(hex(expandLabel(server, 'quic hp', NOTHING, 16)), 'c206b8d9b9f0f37644430b490eeaa314')
  })

  test('A.2: the header of the first packet of the client', () => {
    // The unprotected header and the sample are those of the text; 2 is the packet number.
    const mask = new PacketKeys(client).headerMask(bytes('d1b1c98dd7689fb8ec11d242b123dc9b'))
    assert.equal(hex(mask.subarray(0, 5)), '437b9aec36')
  })

  test('A.3: the first packet of the server is opened, and written the same', () => {
    const packet = bytes(`
      cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a
      5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3
      dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84
      022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4
      2158407dd074ee`)
    const [head] = [...readPacketHeads(packet, NOTHING)] as [Extract<PacketHead, { kind: 'protected' }>]
    assert.deepEqual([head.kind, head.level, hex(head.source)], ['protected', 'initial', 'f067a5502a4262b5'])
    const keys = new PacketKeys(server)
    const opened = openPacket(packet, head, { headerKeys: keys, keysFor: () => keys, largest: -1 })
    assert.equal(opened?.packetNumber, 1)
    const payload = bytes(`
      02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739
      88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94
      0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00
      020304`)
    assert.equal(hex(opened?.payload ?? NOTHING), hex(payload))
    const written = writePacket(
      {
        level: 'initial',
        packetNumber: 1,
        largestAcked: -1,
        destination: NOTHING,
        source: head.source,
        token: NOTHING,
        keyPhase: 0,
        payload,
        sizeMin: 0,
      },
      keys,
    )
    assert.equal(hex(written), hex(packet))
  })

  test('A.4: the tag of a Retry', () => {
    const packet = bytes('ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba')
    assert.equal(hex(retryTag(DESTINATION, packet.subarray(0, -16))), hex(packet.subarray(-16)))
    const [head] = [...readPacketHeads(packet, NOTHING)]
    assert.ok(head?.kind === 'retry')
    assert.deepEqual([hex(head.source), Buffer.from(head.token).toString()], ['f067a5502a4262b5', 'token'])
  })
})

test('RFC 9001 appendix A.5: the update of keys', () => {
  const secret = bytes('9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b')
  assert.equal(hex(nextSecret(secret)), '1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9')
})

test('RFC 8448 section 3: the early and the derived secret', () => {
  const early = hkdfExtract(new Uint8Array(32), new Uint8Array(32))
  assert.equal(hex(early), '33ad0a1c607ec03b09e6cd9893680ce210adf300aa1f2660e1b22e10f170f92a')
  const emptyHash = bytes('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  assert.equal(
    hex(expandLabel(early, 'derived', emptyHash, 32)),
    '6f2615a108c702c5678f54fc9dbab69716c076189c48250cebeac3576c3611ba',
  )
})

test('a packet damaged anywhere is not opened', () => {
  const { client } = initialSecrets(DESTINATION)
  const keys = new PacketKeys(client)
  const packet = writePacket(
    {
      level: 'initial',
      packetNumber: 7,
      largestAcked: -1,
      destination: DESTINATION,
      source: NOTHING,
      token: NOTHING,
      keyPhase: 0,
      payload: Uint8Array.of(1, 0, 0),
      sizeMin: 60,
    },
    keys,
  )
  let opened = 0
  for (let bit = 0; bit < packet.length * 8; bit++) {
    const damaged = Uint8Array.from(packet)
    damaged[bit >> 3] = (damaged[bit >> 3] as number) ^ (1 << (bit & 7))
    for (const head of readPacketHeads(damaged, DESTINATION)) {
      if (head.kind === 'protected' && openPacket(damaged, head, { headerKeys: keys, keysFor: () => keys, largest: 6 }))
        opened += 1
    }
  }
  assert.equal(opened, 0)
})
