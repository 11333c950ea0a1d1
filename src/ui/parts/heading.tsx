import type { ComponentChildren } from 'preact'

/** The title of a view with its actions. */
export function Heading({
  title,
  aside,
  note,
  above,
}: {
  title: ComponentChildren
  note?: ComponentChildren
  above?: ComponentChildren
  aside?: ComponentChildren
}) {
  return (
    <header class="heading">
      <div>
        {above && <p class="above">{above}</p>}
        <h1>{title}</h1>
        {note && <p class="dim">{note}</p>}
      </div>
      {aside && <div class="actions">{aside}</div>}
    </header>
  )
}
