import assert from 'node:assert/strict'
import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { AGE_DAYS_MIN, findYoungPackages } from '../scripts/audit.ts'
import { closureOf, type LockedPackage, nameOf, readLockedPackages, readPackageJson } from './package-lock.ts'
import { findTokens } from './support/process/find-tokens.ts'

const root = join(import.meta.dirname, '..')
const packageJson = readPackageJson()
const locked = readLockedPackages()
/** The project, and the packages that only its tests use. */
const MANIFESTS = [
  { name: 'project', folder: '.', packageJson, locked },
  { name: 'tests', folder: 'test', packageJson: readPackageJson('test'), locked: readLockedPackages('test') },
]

const RUNTIME_PACKAGES_MAX = 60
const LICENCES = ['MIT', 'Apache-2.0', 'BSD-3-Clause', 'ISC', '(Apache-2.0 AND BSD-3-Clause)']
/** Only tests and tools use these; nothing of them is shipped. */
const DEVELOPMENT_LICENCES = [
  'MIT OR Apache-2.0',
  '(MIT OR Apache-2.0)',
  'BSD-2-Clause',
  'CC0-1.0',
  '(MIT AND Zlib)',
  'PSF-2.0',
]
const DEVELOPMENT_EXCEPTIONS = new Map([
  ['eyes', 'states MIT in its text'],
  ['text-encoding-utf-8', 'public domain by its text'],
  ['axe-core', 'MPL, the judge of the page in the browser tests'],
  ['rpc-websockets', 'LGPL, under @solana/web3.js, which the tests use as a client'],
])

/** Not maintained, or with a vulnerability that no version fixes (docs/decisions/0005). */
const LEFT = ['ganache', 'bigint-buffer', 'elliptic', 'secp256k1', 'leveldown', 'keccak']

/** One binary of each native package is installed, the one for the machine; any machine gives the same count. */
function isForLinuxArm({ os = ['linux'], cpu = ['arm64'], libc = ['glibc'] }: LockedPackage): boolean {
  return os.includes('linux') && cpu.includes('arm64') && libc.includes('glibc')
}

describe('supply chain', () => {
  for (const { name, folder, packageJson, locked } of MANIFESTS) {
    test(`every direct dependency is pinned to one exact version, and the lockfile agrees (${name})`, () => {
      const direct = Object.entries({ ...packageJson.dependencies, ...packageJson.devDependencies })
      assert.ok(direct.length > 5)
      for (const [name, version] of direct) {
        assert.match(version, /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/, name)
        assert.equal(locked.get(`node_modules/${name}`)?.version, version, name)
      }
    })

    test(`the lockfile has integrity hashes and no hosts (${name})`, () => {
      assert.ok(locked.size > 20)
      for (const [path, entry] of locked) {
        // A bundled package comes inside its owner's archive, which has a hash of its own.
        if (entry.inBundle !== true) assert.match(entry.integrity ?? '', /^sha512-/, path)
        assert.equal(entry.resolved, undefined, `${path}: keep omit-lockfile-registry-resolved=true in .npmrc`)
        assert.equal(entry.link, undefined, path)
      }
      const npmrc = readFileSync(join(root, folder, '.npmrc'), 'utf8').split('\n')
      for (const line of ['save-exact=true', 'omit-lockfile-registry-resolved=true'])
        assert.ok(npmrc.includes(line), line)
    })

    test(`every package comes from the registry: no git, URL or folder dependency (${name})`, () => {
      for (const [folder, { version, dependencies, optionalDependencies }] of locked) {
        assert.match(version, /^\d+\.\d+\.\d+/, folder)
        for (const [name, wanted] of Object.entries({ ...dependencies, ...optionalDependencies }))
          assert.doesNotMatch(
            wanted,
            /^(git|github|https?|file|link|workspace|portal)\b.*[:/]|^[\w-]+\/[\w-]+$/,
            `${folder}: ${name}`,
          )
      }
    })

    test(`the lockfile has every optional package, also for other platforms: npm ci refuses it otherwise (${name})`, () => {
      const missing = [...locked].flatMap(([folder, { optionalDependencies = {} }]) =>
        Object.keys(optionalDependencies)
          .filter((name) => closureOf([name], locked).size === 0)
          .map((name) => `${folder}: ${name}`),
      )
      assert.deepEqual(missing, [], 'choose the newest version of the package that has all its binaries')
    })

    test(`package.json allows or denies every install script, and only that of Node runs (${name})`, () => {
      const withScript = [...locked]
        .filter(([, entry]) => entry.hasInstallScript === true)
        .map(([folder]) => nameOf(folder))
      assert.deepEqual([...new Set(withScript)].toSorted(), Object.keys(packageJson.allowScripts).toSorted())
      const allowed = Object.entries(packageJson.allowScripts).filter(([, isAllowed]) => isAllowed)
      assert.deepEqual(allowed, folder === '.' ? [['node', true]] : [])
    })

    test(`packages removed for known vulnerabilities are not transitive dependencies either (${name})`, () => {
      const names = new Set([...locked.keys()].map(nameOf))
      assert.deepEqual(
        LEFT.filter((name) => names.has(name)),
        [],
      )
    })
  }

  test(`a running Sluice loads at most ${RUNTIME_PACKAGES_MAX} packages`, (t) => {
    const runtime = Object.keys(packageJson.dependencies)
    // litesvm declares @solana/kit; localnet loads its native part alone (docs/decisions/0005).
    const onOneMachine = new Map([...locked].filter(([, entry]) => isForLinuxArm(entry)))
    const loaded = closureOf(
      runtime.filter((name) => name !== 'litesvm'),
      onOneMachine,
    )
    t.diagnostic(`${loaded.size} packages, ${closureOf(runtime, onOneMachine).size} with litesvm and what it declares`)
    assert.ok(loaded.size >= runtime.length - 1)
    assert.ok(loaded.size + 1 <= RUNTIME_PACKAGES_MAX, `${loaded.size} packages`)
    const ofEngine = [...closureOf(['litesvm'], onOneMachine).difference(loaded)].map(nameOf)
    const foreign = ofEngine.filter((name) => !/^(litesvm|@solana\/|@solana-program\/)/.test(name))
    assert.deepEqual(foreign.toSorted(), ['chalk', 'commander', 'undici-types'])
  })

  test(`the registry query finds packages younger than ${AGE_DAYS_MIN} days and packages without a date`, async () => {
    const nowMs = Date.parse('2026-06-30T00:00:00Z')
    const asked: string[] = []
    const published = async (name: string) => {
      asked.push(name)
      const times = { old: '2026-06-16T00:00:00.000Z', young: '2026-06-16T00:00:01.000Z' }
      return name === 'undated' ? {} : { '1.0.0': times.old, '2.0.0': name === 'good' ? times.old : times.young }
    }
    const packages = new Map(
      Object.entries({
        'node_modules/good': { version: '2.0.0' },
        'node_modules/young': { version: '1.0.0' },
        'node_modules/good/node_modules/young': { version: '2.0.0' },
        'node_modules/undated': { version: '1.0.0' },
        'node_modules/good/node_modules/inside': { version: '2.0.0', inBundle: true },
      }),
    )
    assert.deepEqual(await findYoungPackages(packages, published, nowMs), [
      'undated 1.0.0: the registry has no publishing date',
      'young 2.0.0: public for 13 days',
    ])
    assert.deepEqual(asked.toSorted(), ['good', 'undated', 'young'], 'each name once')
  })

  test('licences are permissive', () => {
    const all = MANIFESTS.flatMap(({ folder, locked: entries }) =>
      [...entries].map(([path, entry]): [string, LockedPackage] => [
        path,
        folder === '.' ? entry : { ...entry, dev: true },
      ]),
    )
    const objections = all.filter(([folder, { license = 'none', dev = false, devOptional = false }]) => {
      if (LICENCES.includes(license)) return false
      return (
        !(dev || devOptional) || !(DEVELOPMENT_LICENCES.includes(license) || DEVELOPMENT_EXCEPTIONS.has(nameOf(folder)))
      )
    })
    assert.deepEqual(
      objections.map(([folder, { license }]) => `${folder}: ${license}`),
      [],
    )
  })

  test('no file of the repository contains a token, by the shipped secret scanner rule', () => {
    for (const kind of ['slc', 'sla']) {
      const leak = `${kind}_${'x'.repeat(38)}`
      assert.deepEqual(findTokens(`curl -H 'x-token: ${leak}'`), [leak])
    }
    const paths = globSync(['**/*', '**/.*', '.*/**/*'], {
      cwd: root,
      exclude: ['**/node_modules', '.git', '.sluice', '**/*.db'],
    })
    const files = paths.filter((path) => statSync(join(root, path)).isFile())
    for (const known of ['.ci/run', '.gitleaks.toml', 'package-lock.json', 'src/cli/main.ts', 'ops/front/nginx.conf'])
      assert.ok(files.includes(known), known)
    const leaks = files.flatMap((path) =>
      findTokens(readFileSync(join(root, path), 'latin1')).map((token) => `${path}: ${token.slice(-4)}`),
    )
    assert.deepEqual(leaks, [])
  })
})
