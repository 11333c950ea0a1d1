import { copyFileSync, globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cpu, PLATFORMS } from './platforms.ts'
import { run } from './run.ts'

/**
 * Node is linked with libatomic, and a small installation of Debian has none, so the archives contain Debian's. It is fetched with apt, which verifies it,
 * for either processor and without a change to the lists of this machine. Writes the library and its notice into the folder.
 */
export function addLibatomic(folder: string, cpu: Cpu): void {
  const work = mkdtempSync(join(tmpdir(), 'sluice-libatomic-'))
  try {
    const { debian, folder: triplet } = PLATFORMS[cpu]
    for (const path of ['lists/partial', 'archives/partial']) mkdirSync(join(work, path), { recursive: true })
    writeFileSync(join(work, 'status'), '')
    const options = {
      'APT::Architecture': debian,
      'APT::Architectures': debian,
      'APT::Sandbox::User': 'root',
      'Dir::State': work,
      'Dir::State::status': join(work, 'status'),
      'Dir::Cache': work,
    }
    const given = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    run('apt-get', ['-qq', ...given, 'update'], work)
    run('apt-get', ['-qq', ...given, 'download', 'libatomic1'], work)
    const [packed = ''] = globSync('libatomic1_*.deb', { cwd: work })
    run('dpkg-deb', ['-x', packed, 'unpacked'], work)
    mkdirSync(folder, { recursive: true })
    copyFileSync(join(work, 'unpacked/usr/lib', triplet, 'libatomic.so.1'), join(folder, 'libatomic.so.1'))
    writeFileSync(join(folder, 'NOTICE'), noticeOf(packed))
  } finally {
    rmSync(work, { recursive: true })
  }
}

function noticeOf(packed: string): string {
  return `libatomic.so.1 is part of GCC, as Debian packages it: ${packed}
Copyright Free Software Foundation, Inc. GPL-3.0-or-later with the GCC Runtime Library Exception 3.1.
Source: the Debian source package of the same version.
`
}
