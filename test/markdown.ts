import { posix } from 'node:path'

export type Fence = { info: string; text: string; line: number }

/** The fenced blocks of a document, with the info string after the opening fence (`sh run`). */
export function readFences(markdown: string): Fence[] {
  const fences: Fence[] = []
  let open: Fence | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line)
    if (fence === null) {
      if (open !== undefined) open.text += `${line}\n`
    } else if (open === undefined) {
      open = { info: fence[1]?.trim() ?? '', text: '', line: index + 1 }
    } else {
      fences.push(open)
      open = undefined
    }
  }
  return fences
}

/** Targets of links to files and headings of the repository; external links are omitted. */
function readLinks(markdown: string): string[] {
  const text = withoutFences(markdown).replaceAll(/`[^`]*`/g, '')
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map((link) => link[1] ?? '')
    .filter((target) => !/^[a-z]+:/.test(target))
}

/** The anchors that a document offers, made from its headings the way GitHub makes them. */
function readAnchors(markdown: string): Set<string> {
  const counts = new Map<string, number>()
  const anchors = new Set<string>()
  for (const heading of withoutFences(markdown).matchAll(/^#{1,6} (.+)$/gm)) {
    const words = (heading[1] ?? '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
    const anchor = words.replaceAll(/\s/g, '-')
    const count = counts.get(anchor) ?? 0
    counts.set(anchor, count + 1)
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`)
  }
  for (const named of markdown.matchAll(/<a (?:id|name)="([^"]+)">/g)) anchors.add(named[1] ?? '')
  return anchors
}

/** Links without a target. `files` has every path a link may name; those of documents with their text. */
export function findDeadLinks(documents: ReadonlyMap<string, string>, exists: (path: string) => boolean): string[] {
  const dead: string[] = []
  for (const [path, text] of documents) {
    for (const link of readLinks(text)) {
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : posix.join(posix.dirname(path), file)
      const targetText = documents.get(target)
      const isDead =
        !exists(target) || (anchor !== undefined && targetText !== undefined && !readAnchors(targetText).has(anchor))
      if (isDead) dead.push(`${path}: ${link}`)
    }
  }
  return dead
}

function withoutFences(markdown: string): string {
  return markdown.replaceAll(/^```.*?^```$/gms, '')
}
