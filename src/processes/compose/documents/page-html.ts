import { createHash } from 'node:crypto'
import { escapeHtml } from './markdown-html.ts'

/** In the page, so that a saved page is complete. No script, no font, no image. */
const STYLE = `
:root { color-scheme: light dark; --text: #1c2330; --soft: #5b6577; --line: #dfe3ea; --back: #fff; --code: #f5f6f9; --link: #1a56c4 }
@media (prefers-color-scheme: dark) {
  :root { --text: #dde3ee; --soft: #97a2b5; --line: #2b3342; --back: #12161d; --code: #1a2029; --link: #7eb0ff }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.6 system-ui, sans-serif }
header, main { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem }
header { padding-block: 1rem; color: var(--soft); border-bottom: 1px solid var(--line); display: flex; gap: 1.25rem }
main { padding-block: 1rem 4rem }
a { color: var(--link); text-underline-offset: .15em }
h1 { font-size: 1.9rem; line-height: 1.2 }
h2 { font-size: 1.3rem; margin-top: 2.2rem; padding-top: .6rem; border-top: 1px solid var(--line) }
h3 { font-size: 1.05rem; margin-top: 1.6rem }
code, pre { font: .875em/1.5 ui-monospace, monospace; background: var(--code); border-radius: 4px }
code { padding: .1em .3em; overflow-wrap: break-word }
pre { padding: .9rem 1rem; overflow-x: auto; border: 1px solid var(--line) }
pre code { padding: 0; background: none; overflow-wrap: normal }
.table { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .925rem }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem .45rem 0; border-bottom: 1px solid var(--line) }
th { color: var(--soft); font-weight: 600 }
td:first-child code { overflow-wrap: normal }
`

/** Content-Security-Policy of the pages: nothing but their own style. */
export function documentPolicy(): string {
  const hash = createHash('sha256').update(STYLE).digest('base64')
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
}

export type PageInput = {
  readonly title: string
  /** HTML. */
  readonly body: string
  /** Links at the top: label and URL. */
  readonly links: readonly (readonly [label: string, url: string])[]
}

/** A complete page. */
export function pageHtml({ title, body, links }: PageInput): string {
  const top = links.map(([label, url]) => `<a href="${escapeHtml(url)}">${escapeHtml(label)}</a>`).join('\n')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Sluice</title>
<style>${STYLE}</style>
</head>
<body>
<header>
${top}
</header>
<main>
${body}
</main>
</body>
</html>
`
}
