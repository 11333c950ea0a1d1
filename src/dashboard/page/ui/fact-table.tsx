import type { ComponentChildren } from 'preact'
import type { ExplanationId } from '../../model/explanations.ts'
import { Explain } from './explain.tsx'

type FactTableProps = {
  title: string
  explains: ExplanationId
  /** Headings of what a row is about, then of its figures, which stand to the right. */
  subjects: readonly string[]
  figures: readonly string[]
  rows: readonly { key: string; subjects: readonly ComponentChildren[]; figures: readonly string[] }[]
  /** What to say when there is no row. */
  none: string
}

/** A titled table of a drawer: who, and how often. */
export function FactTable({ title, explains, subjects, figures, rows, none }: FactTableProps) {
  return (
    <>
      <h3>
        {title}
        <Explain id={explains} />
      </h3>
      <table class="plain-table">
        <thead>
          <tr>
            {subjects.map((words, at) => (
              <th key={at} scope="col">
                {words}
              </th>
            ))}
            {figures.map((words) => (
              <th key={words} scope="col" class="right">
                {words}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              {row.subjects.map((subject, at) => (
                <td key={at}>{subject}</td>
              ))}
              {row.figures.map((figure, at) => (
                <td key={at} class="right number">
                  {figure}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="dim">{none}</p>}
    </>
  )
}
