/**
 * Checks that need the npm registry, before a package version is adopted: the age of each locked version, and known vulnerabilities. It needs the
 * network, so no test runs it:
 *
 *     node_modules/.bin/node scripts/audit.ts
 */
import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { type LockedPackage, nameOf, readLockedPackages } from '../test/package-lock.ts'

/** A compromised package is usually detected within days, so younger versions are not adopted. */
export const AGE_DAYS_MIN = 14
const DAY_MS = 86_400_000
const ASKED_AT_ONCE = 8

/** Publishing times of a package by version. */
export type Published = (name: string) => Promise<Readonly<Record<string, string>>>

/** Locked versions that are too young or without a publishing date, one line each. */
export async function findYoungPackages(
  locked: ReadonlyMap<string, LockedPackage>,
  published: Published,
  nowMs: number,
): Promise<string[]> {
  const versions = new Map<string, Set<string>>()
  for (const [folder, { version, inBundle }] of locked) {
    // A bundled package is inside the archive of its owner and has its age.
    if (inBundle === true) continue
    const name = nameOf(folder)
    versions.set(name, (versions.get(name) ?? new Set()).add(version))
  }
  const findings: string[] = []
  const open = [...versions]
  const ask = async (): Promise<void> => {
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [name, wanted] = next
      const times = await published(name)
      for (const version of wanted) {
        const ageDays = (nowMs - Date.parse(times[version] ?? '')) / DAY_MS
        if (Number.isNaN(ageDays)) findings.push(`${name} ${version}: the registry has no publishing date`)
        else if (ageDays < AGE_DAYS_MIN) findings.push(`${name} ${version}: public for ${Math.floor(ageDays)} days`)
      }
    }
  }
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, ask))
  return findings.toSorted()
}

/** Through npm, which has the registry, certificate and credentials configured. */
async function askNpm(name: string): Promise<Record<string, string>> {
  const { stdout } = await promisify(execFile)('npm', ['view', name, 'time', '--json'], { maxBuffer: 2 ** 26 })
  return JSON.parse(stdout) as Record<string, string>
}

if (import.meta.main) {
  const locked = readLockedPackages()
  const findings = await findYoungPackages(locked, askNpm, Date.now())
  for (const finding of findings) process.stdout.write(`${finding}\n`)
  process.stdout.write(
    `${locked.size} packages, ${findings.length} younger than ${AGE_DAYS_MIN} days or without a date\n`,
  )
  const { status } = spawnSync('npm', ['audit', '--omit=dev'], { stdio: 'inherit' })
  process.exitCode = findings.length === 0 && status === 0 ? 0 : 1
}
