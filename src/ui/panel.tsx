import type { ComponentChildren } from 'preact'

type PanelProps = { id: string; title: string; aside?: ComponentChildren; children?: ComponentChildren }

/** One part of the page with a heading. */
export function Panel({ id, title, aside, children }: PanelProps) {
  return (
    <section class={`panel panel-${id}`} aria-labelledby={`title-${id}`} data-part={id}>
      <header>
        <h2 id={`title-${id}`}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  )
}
