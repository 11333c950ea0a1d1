import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { packDebian } from '../../scripts/release/debian.ts'
import { CPUS, type Cpu, PLATFORMS } from '../../scripts/release/platforms.ts'
import { packagesIn } from '../../scripts/release/standalone.ts'
import { type Archives, addArchives, makeRelease, type Release } from '../../scripts/release.ts'
import { readFences } from '../markdown.ts'
import { closureOf, nameOf, readLockedPackages, readPackageJson } from '../package-lock.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { type BareMachine, startBareMachine } from '../support/machine/bare.ts'
import { glibcNeededBy } from '../support/machine/linked-libraries.ts'
import { copyPackages, isRegistryThere, run } from '../support/machine/release.ts'
import { isFull } from '../support/process/property.ts'

const root = join(import.meta.dirname, '../..')
const cpu = process.arch as Cpu
const other = CPUS.find((each) => each !== cpu) ?? cpu
/** Most bytes of the unpacked release: a package that is large and useless there does not stay unnoticed. */
const UNPACKED_MIB_MAX = 300
const PACKED_MIB_MAX = 120
/** As a unit does: unlike runuser it is replaced by the program, which so gets the signals. */
const EXEC_AS_USER = 'setpriv --reuid=sluice --regid=sluice --init-groups'

describe('installation without a network', () => {
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  let release: Release
  let archives: Archives
  let older: string

  before(async () => {
    home = await temporaryFolder()
    release = await makeRelease(home.file('release'))
    const report = () => {}
    const installPackages = isRegistryThere(home.path) ? {} : { installPackages: copyPackages }
    archives = await addArchives(release, { cpu, report, isUncompressed: !isFull, ...installPackages })
    mkdirSync(home.file('unpacked'))
    run('tar', ['-xzf', archives.tarball, '-C', home.file('unpacked'), '--strip-components', '1'], home.path)
    older = packSmall(home.path, 'older', '0.0.1', cpu)
    packSmall(home.path, 'other', '0.0.1', other)
    mkdirSync(home.file('release/damaged'))
    const bytes = readFileSync(archives.tarball)
    const middle = Math.floor(bytes.length / 2)
    bytes[middle] = (bytes[middle] ?? 0) ^ 1
    writeFileSync(home.file(`release/damaged/${basename(archives.tarball)}`), bytes)
    copyFileSync(release.checksums, home.file('release/damaged/SHA256SUMS'))
  })
  after(() => home[Symbol.asyncDispose]())

  test('the archive holds the production packages of its platform and no other, and is of reasonable size', (t) => {
    const locked = readLockedPackages()
    const fits = (values: readonly string[] | undefined, value: string) => values?.includes(value) !== false
    const wanted = [...closureOf(Object.keys(readPackageJson().dependencies), locked)].filter((folder) => {
      const { os, cpu: cpus, libc } = locked.get(folder) ?? {}
      return fits(os, 'linux') && fits(cpus, cpu) && fits(libc, 'glibc')
    })
    const found = packagesIn(home.file('unpacked'))
    assert.deepEqual(found, [...wanted.map(nameOf), `node-linux-${cpu}`].toSorted())
    for (const name of Object.keys(readPackageJson().devDependencies))
      if (!wanted.includes(`node_modules/${name}`)) assert.ok(!found.includes(name), name)
    const mebibytes = (path: string) => Number(run('du', ['-sm', path], home.path).split('\t')[0])
    t.diagnostic(`unpacked ${mebibytes(home.file('unpacked'))} MiB, packed ${mebibytes(archives.tarball)} MiB`)
    assert.ok(mebibytes(home.file('unpacked')) < UNPACKED_MIB_MAX)
    assert.ok(mebibytes(archives.tarball) < PACKED_MIB_MAX)
  })

  test('the archive holds the checksums of all its files, and Node, protos, documents, page and units are among them', () => {
    run('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], home.file('unpacked'))
    const sums = readFileSync(home.file('unpacked/SHA256SUMS'), 'utf8').trimEnd().split('\n')
    const files = run('find', ['.', '-type', 'f'], home.file('unpacked')).trimEnd().split('\n')
    assert.equal(sums.length, files.length - 1, 'all but itself')
    for (const path of [
      `node_modules/node-linux-${cpu}/bin/node`,
      'native/libatomic.so.1',
      'lib/cli/main.js',
      'proto/geyser.proto',
      'docs/packaging.md',
      'page/index.html',
      'ops/systemd/sluice.service',
      'ops/sysctl/60-sluice.conf',
      'LICENSE',
      'THIRD-PARTY-LICENSES',
    ])
      assert.ok(
        sums.some((line) => line.endsWith(`  ${path}`)),
        path,
      )
  })

  test('the documents name the archives of both platforms', () => {
    const page = readFileSync(join(root, 'docs/packaging.md'), 'utf8')
    for (const name of [basename(archives.tarball), basename(archives.debian)])
      for (const each of CPUS)
        assert.ok(
          page.includes(
            `\`${name.replace(`linux-${cpu}`, `linux-${each}`).replace(`_${PLATFORMS[cpu].debian}.`, `_${PLATFORMS[each].debian}.`)}\``,
          ),
          name,
        )
  })

  test('the launcher and the Debian package ask for the glibc that the binaries are linked with', () => {
    const needed = glibcNeededBy(home.file('unpacked'))
    assert.ok(readFileSync(join(root, 'sluice'), 'utf8').includes(`glibc 2.${needed} or newer`), `glibc 2.${needed}`)
    assert.match(
      run('dpkg-deb', ['-f', archives.debian, 'Depends'], home.path),
      new RegExp(`libc6 \\(>= 2\\.${needed}\\)`),
    )
  })

  test('the Debian package has its files where dpkg and systemd expect them, and no script of it uses a network', () => {
    const listed = run('dpkg-deb', ['-c', archives.debian], home.path)
    const owners = new Set(
      listed
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/\s+/)[1]),
    )
    assert.deepEqual([...owners], ['root/root'])
    for (const path of [
      './opt/sluice/sluice',
      './usr/bin/sluice -> ../../opt/sluice/sluice',
      './usr/lib/systemd/system/sluice.service',
      './usr/lib/systemd/system/sluice-gateway.service',
      './usr/lib/systemd/system/sluice-indexer.service',
      './usr/lib/systemd/system/sluice-sender.service',
      './usr/lib/sysusers.d/sluice.conf',
      './usr/share/doc/sluice/copyright',
    ])
      assert.ok(listed.includes(` ${path}\n`), path)
    assert.doesNotMatch(listed, / \.\/(etc|var)\//, 'configuration and state belong to no package')
    const fields = run('dpkg-deb', ['-f', archives.debian], home.path)
    assert.match(fields, new RegExp(`^Architecture: ${PLATFORMS[cpu].debian}$`, 'm'))
    run('dpkg-deb', ['-e', archives.debian, home.file('control')], home.path)
    for (const script of ['postinst', 'prerm', 'postrm']) {
      run('sh', ['-n', home.file(`control/${script}`)], home.path)
      const text = readFileSync(home.file(`control/${script}`), 'utf8')
      assert.doesNotMatch(text, /\b(curl|wget|npm|npx|apt|apt-get|https?:)\b/, script)
    }
  })

  test('the archive installs as documented and serves, on a machine without network, Node and npm', async (t) => {
    const machine = await bare(t)
    if (machine === undefined) return
    await using _ = machine
    const { code, output } = await machine.attempt(`cd /media/brought/damaged\n${documented('tarball')}`)
    assert.notEqual(code, 0)
    assert.match(output, /sluice-.*\.tar\.gz: FAILED/)
    assert.notEqual((await machine.attempt('test -e /opt/sluice')).code, 0, 'nothing is unpacked')

    await machine.sh(`cd /media/brought\n${documented('tarball')}`)
    assert.equal(await machine.sh('command -v node npm || echo none'), 'none')
    assert.equal(await machine.sh('sluice --version'), readVersion())
    await machine.sh('mkdir /tmp/trial')
    const token = await servesIn(machine, '/tmp/trial', 'sluice serve', 'grep -o -m1 "slc_[0-9A-Za-z]*" log')
    assert.match(token, /^slc_/)
  })

  test('the Debian package installs as documented and serves; an upgrade keeps state and configuration', async (t) => {
    const machine = await bare(t)
    if (machine === undefined) return
    await using _ = machine
    const refused = await machine.attempt('dpkg -i /media/brought/other.deb')
    assert.notEqual(refused.code, 0)
    assert.match(refused.output, /architecture .* does not match system/)

    await machine.sh(`dpkg -i /media/brought/${basename(older)}`)
    assert.equal(await machine.sh('stat -c "%U %a" /etc/sluice /var/lib/sluice'), 'sluice 700\nsluice 700')
    await machine.sh('chmod 750 /etc/sluice && echo kept >/var/lib/sluice/kept')
    await machine.sh(
      'mkdir -p /etc/systemd/system/sluice.service.d && echo "[Service]" >/etc/systemd/system/sluice.service.d/own.conf',
    )

    await machine.sh(`cd /media/brought\n${documented('debian')}`)
    assert.equal(
      await machine.sh('dpkg-query -W -f "\\${Version} \\${Status}" sluice'),
      `${readVersion()} install ok installed`,
    )
    assert.equal(await machine.sh('dpkg --verify sluice'), '')
    assert.equal(
      await machine.sh('cat /var/lib/sluice/kept /etc/systemd/system/sluice.service.d/own.conf'),
      'kept\n[Service]',
    )
    assert.equal(await machine.sh('stat -c "%U %a" /etc/sluice'), 'sluice 750')
    assert.notEqual((await machine.attempt('test -e /opt/sluice/only-in-the-older-version')).code, 0)

    const start = /^ExecStart=(.*)$/m.exec(readFileSync(join(root, 'ops/systemd/sluice.service'), 'utf8'))?.[1] ?? ''
    const asUser = 'runuser -u sluice -- sluice'
    const newToken =
      `${asUser} customer add acme >&2; ` +
      `${asUser} sub create acme-prod --customer acme --plan build --print-token | grep -o -m1 "slc_[0-9A-Za-z]*"`
    const before = await machine.sh('sha256sum /etc/sluice/sluice.toml')
    await servesIn(machine, '/var/lib/sluice', `${EXEC_AS_USER} ${start}`, newToken)

    // The same version again, and removal: what the operator and the customers have stays.
    await machine.sh(`dpkg -i /media/brought/${basename(archives.debian)}`)
    assert.match(await machine.sh(`${asUser} customer list`), /acme/)
    const { output } = await machine.attempt('dpkg --purge sluice')
    assert.match(output, /kept \/etc\/sluice .* and \/var\/lib\/sluice/)
    assert.equal(await machine.sh('sha256sum /etc/sluice/sluice.toml'), before)
    await machine.sh('test -s /var/lib/sluice/access.db && test ! -e /opt/sluice && test ! -e /usr/bin/sluice')
  })

  if (isFull)
    test('the archives of the other platform are complete, and its program explains itself on this machine', async (t) => {
      const made = await addArchives(release, { cpu: other, report: (line) => t.diagnostic(line) })
      assert.match(run('dpkg-deb', ['-f', made.debian, 'Architecture'], home.path), new RegExp(PLATFORMS[other].debian))
      const machine = await bare(t)
      if (machine === undefined) return
      await using _ = machine
      await machine.sh(
        `mkdir /opt/x && tar -xzf /media/brought/${basename(made.tarball)} -C /opt/x --strip-components 1`,
      )
      const { code, output } = await machine.attempt('/opt/x/sluice --version')
      assert.equal(code, 1)
      assert.ok(output.includes(`this release is for ${other}, and this machine is ${cpu}`), output)
    })

  async function bare(t: TestContext): Promise<BareMachine | undefined> {
    const machine = await startBareMachine(home.file('release'))
    if (typeof machine !== 'string') return machine
    t.skip(`SKIPPED: no machine without a network can be made here: ${machine}`)
    return undefined
  }
})

/** A package of a few files, with the real scripts: what matters is how dpkg treats it. */
function packSmall(home: string, name: string, version: string, platform: Cpu): string {
  const folder = join(home, `${name}-tree`)
  for (const path of ['ops/systemd', 'ops/debian']) mkdirSync(join(folder, path), { recursive: true })
  const scripts = ['postinst', 'prerm', 'postrm'].map((script) => `ops/debian/${script}`)
  for (const path of ['LICENSE', 'sluice', 'ops/systemd/sluice.service', 'ops/systemd/sysusers.conf', ...scripts])
    copyFileSync(join(root, path), join(folder, path))
  writeFileSync(join(folder, 'only-in-the-older-version'), '')
  const target = join(home, `release/${name}.deb`)
  packDebian(folder, join(home, `${name}-work`), target, { cpu: platform, version, description: 'older' })
  return target
}

/** The lines of docs/packaging.md with this mark, for this processor; there is neither sudo nor a running systemd on the machine. */
function documented(mark: string): string {
  const page = readFileSync(join(root, 'docs/packaging.md'), 'utf8')
  const lines = readFences(page).find((fence) => fence.info === `sh ${mark}`)?.text ?? ''
  assert.ok(lines.includes('sha256sum --check'), mark)
  return lines
    .replaceAll('linux-x64', `linux-${cpu}`)
    .replaceAll('_amd64', `_${PLATFORMS[cpu].debian}`)
    .replaceAll('sudo -u sluice', 'runuser -u sluice --')
    .replaceAll(/ && systemctl .*$/gm, '')
}

function readVersion(): string {
  return (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version
}

/** Starts Sluice on its usual ports, makes a first call with the token that `findToken` prints, and ends it by SIGTERM. */
async function servesIn(machine: BareMachine, folder: string, command: string, findToken: string): Promise<string> {
  const start = `sh -c 'echo $$ >/run/pid; exec env SLUICE_DRAIN__LAME_DUCK_MS=0 ${command}'`
  await machine.sh(`cd ${folder}; (${start} >log 2>&1; echo $? >/run/code) >/dev/null 2>&1 &`)
  const until = (condition: string) =>
    `for i in $(seq 900); do if ${condition}; then break; fi; [ ! -e /run/code ] || break; sleep 0.2; done; ${condition}`
  const ready = await machine.attempt(
    `${until('curl -sf http://127.0.0.1:9464/readyz')} || { cat ${folder}/log; exit 1; }`,
  )
  assert.equal(ready.code, 0, ready.output)
  const token = await machine.sh(`cd ${folder}; ${findToken}`)
  const call = `curl -sf http://127.0.0.1:8899 -H 'content-type: application/json' -H "x-token: ${token}" -d '{"jsonrpc":"2.0","id":1,"method":"getSlot"}'`
  // A token that was just made is known to the gateway within a second.
  const called = await machine.sh(`for i in $(seq 100); do ${call} && break; sleep 0.2; done`)
  assert.equal(typeof (JSON.parse(called) as { result: unknown }).result, 'number')
  await machine.sh('curl -sf http://127.0.0.1:8443/health && curl -sf http://127.0.0.1:8443/ | grep -q page-')
  assert.equal(
    await machine.sh(`kill "$(cat /run/pid)"; ${until('test -e /run/code')}; cat /run/code; rm /run/code`),
    '0',
  )
  return token
}
