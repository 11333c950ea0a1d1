import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseDestination } from '../../src/access/provisioning/destinations.ts'
import { ServiceError } from '../../src/core/error.ts'
import { refusalOf } from '../../src/shreds/destinations/rules.ts'
import { checkProperty } from '../support/process/property.ts'

/** The relay's rules where the operator allows vouched addresses of the own network. */
const RULES = { allowLoopback: true, allowPrivate: true, ownAddresses: new Set<string>(), sourcePort: 20_000 }
const ADDRESS = /(?:\[[0-9A-Fa-f:.]+\]|\d{1,3}(?:\.\d{1,3}){3}):\d+/g

/** The addresses that a refusal suggests, other than the given one. */
function suggestedFor(text: string, vouched: boolean): string[] {
  try {
    parseDestination(text, vouched)
    return []
  } catch (error) {
    assert(error instanceof ServiceError, String(error))
    const shown = `${error.message.replaceAll(text, '')} ${error.fix ?? ''}`
    return [...shown.matchAll(ADDRESS)].map(([address]) => address)
  }
}

test('an address that the refusal of a destination suggests is accepted, by the command and by the relay', (t) => {
  const ip = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('8.8.8.8', '2606:4700::1111', '10.0.0.7', '::ffff:8.8.8.8'))
  const port = fc.oneof(fc.integer({ min: 0, max: 70_000 }), fc.constantFrom(80, 1900, 5353, 11_211))
  const text = fc.oneof(
    ip,
    fc.tuple(ip, port).map(([address, at]) => `${address}:${at}`),
    fc.tuple(ip, port).map(([address, at]) => `[${address}]:${at}`),
    fc.tuple(ip, port).map(([address, at]) => `udp://${address}:${at}/`),
    fc.string({ maxLength: 40 }),
    fc.constantFrom('localhost:20001', 'receiver.example.com:20001', '198.51.100.7:20001', '[2001:db8::7]:20001'),
  )
  let suggestions = 0
  checkProperty(
    t,
    fc.property(text, fc.boolean(), (given, vouched) => {
      for (const suggested of suggestedFor(given, vouched)) {
        suggestions += 1
        assert.equal(refusalOf(parseDestination(suggested, vouched), RULES), undefined, `${given} -> ${suggested}`)
      }
    }),
    2000,
    200_000,
  )
  assert.ok(suggestions > 100, `${suggestions} suggestions were seen`)
})

test('what is nearly a destination is shown as one', () => {
  for (const [given, suggested] of [
    ['8.8.8.8', '8.8.8.8:20001'],
    ['udp://8.8.8.8:9000', '8.8.8.8:9000'],
    ['8.8.8.8:80', '8.8.8.8:20001'],
    ['2606:4700::1111', '[2606:4700::1111]:20001'],
    ['[::ffff:8.8.8.8]:9000', '8.8.8.8:9000'],
  ] as const)
    assert.deepEqual(suggestedFor(given, false), [suggested], given)
  // Addresses for documentation, of a machine without a name, or not at all.
  for (const given of ['198.51.100.7:20001', '[2001:db8::7]:20001', 'localhost:20001', 'nonsense', ''])
    assert.deepEqual(suggestedFor(given, true), [], given)
})
