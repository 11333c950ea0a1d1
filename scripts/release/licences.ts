import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { closureOf, type LockedPackage, nameOf } from '../../test/package-lock.ts'

/** Packages whose code is bundled into the page, and so is part of the published files. */
const IN_THE_PAGE = ['preact', '@preact/signals', 'uplot', 'sigma', 'graphology', 'graphology-layout-forceatlas2']

const TITLE = `Third-party licences

Part one lists every package that is installed with Sluice, and those whose code is part of its live page. Part two holds the texts of their licences, each once.
Binaries for single machines are under the licence of the package that names them; Node's own text is in the folder of its package.
`

/** The list of packages with their licences and texts. The same on every machine. */
export function thirdPartyLicences(
  root: string,
  installed: Readonly<Record<string, Partial<LockedPackage>>>,
  locked: ReadonlyMap<string, LockedPackage>,
): string {
  const page = [...closureOf(IN_THE_PAGE, locked)].map((folder): [string, Partial<LockedPackage>, boolean] => [
    folder,
    locked.get(folder) ?? {},
    true,
  ])
  const shipped = [
    ...Object.entries(installed)
      .filter(([folder]) => folder !== '')
      .map(([folder, entry]): [string, Partial<LockedPackage>, boolean] => [folder, entry, false]),
    ...page,
  ].toSorted(([a], [b]) => (a < b ? -1 : 1))

  const list = shipped.map(
    ([folder, { version, license }, isPage]) =>
      `${nameOf(folder)} ${version}  ${license}${isPage ? '  (in the live page)' : ''}`,
  )
  // The published tree is flat; in the checkout a package may be nested.
  const folderOf = new Map([...locked].map(([folder, { version }]) => [`${nameOf(folder)} ${version}`, folder]))
  const owners = new Map<string, string[]>()
  for (const [folder, { cpu, os, version }] of shipped) {
    if (cpu !== undefined || os !== undefined) continue
    const text = licenceText(join(root, folderOf.get(`${nameOf(folder)} ${version}`) ?? folder))
    if (text !== undefined) owners.set(text, [...(owners.get(text) ?? []), nameOf(folder)])
  }
  const texts = [...owners].map(([text, names]) => `${'='.repeat(80)}\n${names.join(', ')}\n\n${text}\n`)
  return `${TITLE}\n${list.join('\n')}\n\n${texts.join('\n')}`
}

/** The licence text in the folder of the package; a few packages have none. */
function licenceText(folder: string): string | undefined {
  const name = globSync('{LICENSE,LICENCE,License,license}{,.*}', { cwd: folder }).toSorted()[0]
  return name === undefined ? undefined : readFileSync(join(folder, name), 'utf8').replaceAll('\r\n', '\n').trim()
}
