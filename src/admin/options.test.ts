import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adminOptions } from './options.ts'

const OIDC = { issuer: 'https://login.example.net', clientId: 'sluice', roles: { staff: 'owner' } }

/** What is wrong with `publicUrl`. */
function faultsOf(section: object): string[] {
  const { error } = adminOptions.safeParse(section)
  const issues = error?.issues ?? []
  for (const { path } of issues) assert.deepEqual(path, ['publicUrl'])
  return issues.map(({ message }) => message)
}

test('OpenID Connect on a listener that is not on loopback needs a public address', () => {
  const listen = '0.0.0.0:9470'
  assert.match(faultsOf({ listen, oidc: OIDC }).join(), /^set it for admin\.oidc, such as https:/)
  assert.match(faultsOf({ listen: '[::]:9470', oidc: OIDC }).join(), /^set it for admin\.oidc/)
  assert.deepEqual(faultsOf({ listen, oidc: OIDC, publicUrl: 'https://ops.example.net' }), [])
  assert.deepEqual(faultsOf({ listen }), [])
  for (const loopback of ['127.0.0.1:9470', '[::1]:9470', 'localhost:9470'])
    assert.deepEqual(faultsOf({ listen: loopback, oidc: OIDC }), [], loopback)
})

test('OpenID Connect is refused with a public address that has a path; the error has what to write', () => {
  const refused = faultsOf({ oidc: OIDC, publicUrl: 'https://ops.example.net:8443/sluice/' })
  assert.equal(refused.length, 1)
  assert.match(refused[0] ?? '', /^remove the path \/sluice\/: .* Write https:\/\/ops\.example\.net:8443 if /)
  assert.deepEqual(faultsOf({ oidc: OIDC, publicUrl: 'https://ops.example.net/' }), [])
  assert.deepEqual(faultsOf({ publicUrl: 'https://ops.example.net/sluice/' }), [], 'without OpenID Connect')
  assert.equal(faultsOf({ oidc: OIDC, publicUrl: 'ops.example.net/sluice' }).length, 1, 'not a URL')
})
