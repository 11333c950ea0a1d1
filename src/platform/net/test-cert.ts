import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type TestCert = Disposable & {
  folder: string
  cert: string
  key: string
  /** Replaces both files by a new pair with a rename each, as renewal tools do. */
  renew(name: string, days?: number): void
}

/** For tests: a certificate for localhost, made by openssl, in a temporary folder. */
export function makeTestCert(name = 'first', days = 90): TestCert {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cert-'))
  const cert = join(folder, 'cert.pem')
  const key = join(folder, 'key.pem')
  function renew(commonName: string, validDays = 90): void {
    const args = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      String(validDays),
    ]
    args.push('-subj', `/CN=${commonName}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1')
    execFileSync('openssl', [...args, '-keyout', `${key}.new`, '-out', `${cert}.new`], { stdio: 'pipe' })
    chmodSync(`${key}.new`, 0o600)
    renameSync(`${key}.new`, key)
    renameSync(`${cert}.new`, cert)
  }
  renew(name, days)
  return { folder, cert, key, renew, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}
