/**
 * Wraps Markdown to the terminal width: paragraphs and list items only. Code, tables and headings stay unwrapped, so that code can be pasted.
 */
export function wrapMarkdown(text: string, columns: number): string {
  let isCode = false
  const lines = text.split('\n').flatMap((line) => {
    if (line.startsWith('```')) isCode = !isCode
    return isCode || line.startsWith('|') || line.startsWith('#') ? [line] : wrapLine(line, columns)
  })
  return lines.join('\n')
}

function wrapLine(line: string, columns: number): string[] {
  if (line.length <= columns) return [line]
  // Continuation lines of a list item are indented to its text.
  const first = /^ *(?:[-*] |\d+\. )?/.exec(line)?.[0] ?? ''
  const lines: string[] = []
  let current = first
  let isEmpty = true
  for (const word of line.slice(first.length).split(' ')) {
    if (!isEmpty && current.length + 1 + word.length > columns) {
      lines.push(current)
      current = ' '.repeat(first.length)
      isEmpty = true
    }
    current += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...lines, current]
}
