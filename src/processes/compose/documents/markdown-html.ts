/** The target of a link on the page, or undefined where the text stands without a link. */
export type LinkTo = (target: string) => string | undefined

/**
 * Renders the Markdown of the shipped documents as HTML: headings with GitHub's anchors, paragraphs, lists, tables, fenced code, and inline code, links,
 * bold and italic text. All text is escaped; HTML in a document is shown as text, and comments are left out.
 */
export function renderMarkdown(markdown: string, linkTo: LinkTo): string {
  const lines = markdown.replaceAll('\r', '').split('\n')
  const anchors = createAnchors()
  const html: string[] = []
  let at = 0
  const line = () => lines[at] ?? ''
  const inline = (text: string) => renderInline(text, linkTo)

  while (at < lines.length) {
    if (line().trim() === '' || line().startsWith('<!--')) at += 1
    else if (line().startsWith('```')) html.push(takeFence())
    else if (/^#{1,6} /.test(line())) html.push(takeHeading())
    else if (line().startsWith('|')) html.push(takeTable())
    else if (ITEM.test(line())) html.push(takeList())
    else html.push(`<p>${inline(takeText())}</p>`)
  }
  return html.join('\n')

  function takeFence(): string {
    const code: string[] = []
    for (at += 1; at < lines.length && !line().startsWith('```'); at += 1) code.push(line())
    at += 1
    return `<pre><code>${escapeHtml(code.join('\n'))}</code></pre>`
  }

  function takeHeading(): string {
    const [, marks = '#', text = ''] = /^(#{1,6}) (.*)$/.exec(line()) ?? []
    at += 1
    return `<h${marks.length} id="${escapeHtml(anchors(text))}">${inline(text)}</h${marks.length}>`
  }

  function takeTable(): string {
    const rows: string[][] = []
    for (; line().startsWith('|'); at += 1) rows.push(cellsOf(line()))
    const [head = [], second = [], ...rest] = rows
    const hasHead = second.every((cell) => /^:?-+:?$/.test(cell))
    const row = (cells: readonly string[], tag: 'td' | 'th') =>
      `<tr>${cells.map((cell) => `<${tag}>${inline(cell)}</${tag}>`).join('')}</tr>`
    const body = (hasHead ? rest : rows).map((cells) => row(cells, 'td')).join('\n')
    const title = hasHead ? `<thead>${row(head, 'th')}</thead>` : ''
    return `<div class="table"><table>${title}<tbody>\n${body}\n</tbody></table></div>`
  }

  function takeList(): string {
    const tag = /^\d/.test(line()) ? 'ol' : 'ul'
    const items: string[] = []
    while (ITEM.test(line())) {
      lines[at] = line().replace(ITEM, '')
      items.push(`<li>${inline(takeText())}</li>`)
    }
    return `<${tag}>\n${items.join('\n')}\n</${tag}>`
  }

  /** Lines up to the next block. */
  function takeText(): string {
    const text = [line().trim()]
    for (at += 1; at < lines.length && line().trim() !== '' && !STARTS_BLOCK.test(line()); at += 1)
      text.push(line().trim())
    return text.join('\n')
  }
}

const ITEM = /^(?:[-*]|\d{1,3}\.) /
const STARTS_BLOCK = /^(?:```|#{1,6} |\||[-*] |\d{1,3}\. )/
/** Bounded, so that a mark without its end costs little. */
const INLINE =
  /`([^`]{1,999})`|\[([^\]]{1,999})\]\(([^()\s]{1,999})\)|\*\*([^*]{1,999})\*\*|\*([^*\s][^*]{0,999})\*|\\([\\|*`_[\]])/g

function renderInline(text: string, linkTo: LinkTo): string {
  let html = ''
  let end = 0
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, label, target, bold, italic, escaped] = match
    html += escapeHtml(text.slice(end, match.index))
    end = match.index + whole.length
    if (code !== undefined) html += `<code>${escapeHtml(code)}</code>`
    else if (label !== undefined) html += linkOf(renderInline(label, linkTo), linkTo(target ?? ''))
    else if (bold !== undefined) html += `<strong>${renderInline(bold, linkTo)}</strong>`
    else if (italic !== undefined) html += `<em>${renderInline(italic, linkTo)}</em>`
    else html += escapeHtml(escaped ?? '')
  }
  return html + escapeHtml(text.slice(end))
}

function linkOf(label: string, url: string | undefined): string {
  return url === undefined ? label : `<a href="${escapeHtml(url)}">${label}</a>`
}

/** Cells of a row; `\|` is a bar inside of one. */
function cellsOf(row: string): string[] {
  const cells = row
    .trim()
    .replace(/^\|/, '')
    .replace(/\|$/, '')
    .split(/(?<!\\)\|/)
  return cells.map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/** The anchors of the headings of a page, made as GitHub makes them. */
function createAnchors(): (heading: string) => string {
  const counts = new Map<string, number>()
  return (heading) => {
    const words = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    const anchor = words.trim().replaceAll(/\s/g, '-')
    const count = counts.get(anchor) ?? 0
    counts.set(anchor, count + 1)
    return count === 0 ? anchor : `${anchor}-${count}`
  }
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
