import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { createSigningKey } from './ed25519.ts'
import { tpuCertificate } from './tpu-certificate.ts'

test('the certificate has the 249 bytes of a validator certificate, with the key at offset 100, and node:crypto parses it', () => {
  const { publicKey } = createSigningKey(new Uint8Array(32).fill(3))
  const der = tpuCertificate(publicKey)
  assert.equal(der.length, 249)
  assert.deepEqual(der.subarray(100, 132), publicKey)
  assert.ok(
    der.subarray(-64).every((byte) => byte === 0xff),
    'the signature is a placeholder',
  )
  const read = new X509Certificate(der)
  assert.deepEqual([read.issuer, read.subject, read.subjectAltName], ['CN=Solana node', undefined, 'DNS:localhost'])
  assert.deepEqual(
    [read.validFrom, read.validTo, read.serialNumber],
    ['Jan  1 00:00:00 1970 GMT', 'Jan  1 00:00:00 4096 GMT', '0101010101010101'],
  )
  assert.equal(read.publicKey.export({ format: 'jwk' }).x, Buffer.from(publicKey).toString('base64url'))
  assert.throws(() => tpuCertificate(new Uint8Array(31)), TypeError)
})
