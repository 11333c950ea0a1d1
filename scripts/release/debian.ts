import { chmodSync, copyFileSync, cpSync, globSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Cpu, FILE_TIME, PLATFORMS } from './platforms.ts'
import { run } from './run.ts'
import { sumsOf } from './standalone.ts'

/** What the binaries are linked with (a test compares), and what creates the user. libatomic is in the package. */
const DEPENDS = ['libc6 (>= 2.28)', 'libstdc++6 (>= 7)', 'libgcc-s1 | libgcc1', 'systemd | systemd-standalone-sysusers']

export type DebianOptions = {
  readonly cpu: Cpu
  readonly version: string
  readonly description: string
  /** Options of dpkg-deb. By default xz at its fastest: three quarters of gzip; higher levels take three times as long for little. */
  readonly compression?: readonly string[]
}

/**
 * Makes the package from a standalone release, which is moved into `work`. It installs to /opt/sluice, where the units expect it. The configuration is
 * written by `sluice init` and belongs to no package, so dpkg never replaces it. The kernel settings are not installed: they may be lower than those of
 * another program on the machine.
 */
export function packDebian(standalone: string, work: string, target: string, options: DebianOptions): void {
  const { cpu, version, description, compression = ['-Zxz', '-z1'] } = options
  const opt = join(work, 'opt/sluice')
  mkdirSync(dirname(opt), { recursive: true })
  renameSync(standalone, opt)
  const put = (from: string, to: string): void => {
    mkdirSync(dirname(join(work, to)), { recursive: true })
    copyFileSync(join(opt, from), join(work, to))
    chmodSync(join(work, to), 0o644)
  }
  for (const unit of globSync('ops/systemd/*.{service,timer}', { cwd: opt }))
    put(unit, `usr/lib/systemd/system/${basename(unit)}`)
  put('ops/systemd/sysusers.conf', 'usr/lib/sysusers.d/sluice.conf')
  put('LICENSE', 'usr/share/doc/sluice/copyright')
  mkdirSync(join(work, 'usr/bin'))
  symlinkSync('../../opt/sluice/sluice', join(work, 'usr/bin/sluice'))
  run('chmod', ['-R', 'u+rwX,go+rX,go-w', '.'], work)

  const sums = sumsOf(work, 'md5')
  cpSync(join(opt, 'ops/debian'), join(work, 'DEBIAN'), { recursive: true })
  for (const script of globSync('DEBIAN/*', { cwd: work })) chmodSync(join(work, script), 0o755)
  const kibibytes = Number(run('du', ['-sk', '--apparent-size', '--exclude=DEBIAN', '.'], work).split('\t')[0])
  const fields = {
    Package: 'sluice',
    Version: version,
    Architecture: PLATFORMS[cpu].debian,
    Maintainer: 'Sluice <sluice@localhost>',
    'Installed-Size': kibibytes,
    Depends: DEPENDS.join(', '),
    Section: 'net',
    Priority: 'optional',
    Description: description,
  }
  const control = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`)
  writeFileSync(join(work, 'DEBIAN/control'), control.join(''))
  writeFileSync(join(work, 'DEBIAN/md5sums'), sums)
  for (const name of ['control', 'md5sums']) chmodSync(join(work, 'DEBIAN', name), 0o644)
  const stable = { SOURCE_DATE_EPOCH: String(FILE_TIME) }
  run('dpkg-deb', ['--root-owner-group', '--threads-max=1', ...compression, '--build', '.', target], work, stable)
}
