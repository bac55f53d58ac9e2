// What the pages need beyond htmx: when live updates wait, keys, charts, and the theme. Everything else works without.
(() => {
  'use strict';
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];

  // The page that a link opens has the key of the session. Every form that acts carries it: a browser sends cookies to
  // each port of a host, but keeps this storage for one.
  const arrived = $('#signed-in');
  if (arrived) { localStorage.setItem('session-key', arrived.dataset.key); location.replace('/'); return; }
  addEventListener('submit', (event) => {
    const form = event.target, by = event.submitter;
    if ((by?.hasAttribute('formmethod') ? by.formMethod : form.method) !== 'post' || $('[name=session-key]', form)) return;
    const field = document.createElement('input');
    field.type = 'hidden'; field.name = 'session-key'; field.value = localStorage.getItem('session-key') || '';
    form.append(field);
  }, true);

  // Theme: the system's until somebody chooses.
  const stored = localStorage.getItem('theme');
  if (stored) document.documentElement.dataset.theme = stored;
  const dark = () => (document.documentElement.dataset.theme ||
    (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';

  // Live updates wait while somebody is busy: a menu, a form or a dialog is open, a field has the focus or another value
  // than it came with, rows are chosen, or text is selected. The newest one is shown as soon as nobody is busy. In a
  // hidden tab the stream is closed.
  let held = false, waiting = null;
  const edited = (field) => field.matches('[type=checkbox], [type=radio]') ? field.checked !== field.defaultChecked
    : field.matches('select') ? field.selectedOptions[0] !== (field.querySelector('[selected]') || field.options[0])
    : field.value !== field.defaultValue;
  const busy = () => held || $('dialog[open]') || $('#live details.popup[open]') ||
    $$('#main input, #main textarea, #main select').some((field) => edited(field) || field === document.activeElement) ||
    (getSelection().toString() !== '' && $('#main')?.contains(getSelection().anchorNode));
  // New rows come at the top of a list, and at the end of a box of lines. While another part is read, they wait behind a
  // button; a page without new rows changes in its place.
  const box = () => $('[data-tail]');
  const atNewest = () => box() ? box().scrollTop + box().clientHeight > box().scrollHeight - 24 : scrollY < 240;
  const toNewest = () => { if (box()) box().scrollTop = box().scrollHeight; else scrollTo(0, 0); };
  const newRows = (text) => !$('[data-list], [data-tail]') || atNewest() ? 0 :
    $$('[data-list] tbody tr[id], [data-tail] li[id]', new DOMParser().parseFromString(text, 'text/html'))
      .filter((row) => !document.getElementById(row.id)).length;
  let following = true; // the end of the box of lines was visible before the update
  function waits(text) {
    if (busy()) return true;
    following = atNewest();
    const rows = newRows(text);
    if (rows > 0) offer(rows); else $('#waiting')?.remove();
    return rows > 0;
  }
  // An error while an update is put into the page is one of a script: the page stops following changes. Other errors are
  // those of the connection. In both cases the stream is closed, since a browser has few connections for all tabs.
  let updating = false, broken = false;
  document.addEventListener('htmx:sse:before:message', (event) => {
    $('#lost')?.remove();
    waiting = null;
    if (waits(event.detail.message.data)) { event.preventDefault(); waiting = event.detail.message.data; return; }
    updating = true;
  });
  document.addEventListener('htmx:sse:after:message', () => { updating = false; });
  async function catchUp() {
    if (waiting === null || broken || waits(waiting)) return;
    const live = $('#live'), text = waiting;
    waiting = null;
    try {
      await htmx.swap({ text, sourceElement: live, target: live, swap: 'innerMorph' });
    } catch (error) { breaks(error); }
  }
  setInterval(catchUp, 500);
  document.addEventListener('htmx:sse:error', (event) => {
    event.detail?.connection?.abortController?.abort();
    if (updating) breaks(event.detail.error); else lost(event.detail?.status);
  });
  document.addEventListener('htmx:sse:before:connection', (event) => { if (broken) event.preventDefault(); });
  document.addEventListener('htmx:sse:close', (event) => { if (event.detail?.reason !== 'removed' && !broken) lost(); });
  function breaks(error) {
    updating = false; broken = true;
    $('#live')._htmx?.sse?.abortController?.abort();
    console.error(error);
    tell('A script error stopped live updates. Reload the page.');
  }
  function lost(status) {
    tell(status === 401 || status === 403 ? 'You are signed out. Type "tendril open" and follow the link.'
      : 'No connection to tendril. Retrying…');
  }
  function tell(text) {
    const bar = $('#lost') || document.createElement('div');
    bar.id = 'lost'; bar.role = 'status'; bar.textContent = text;
    document.body.append(bar);
  }
  function offer(rows) {
    const button = $('#waiting') || document.createElement('button');
    button.id = 'waiting'; button.className = 'primary'; button.textContent = rows + ' new';
    button.onclick = () => { toNewest(); catchUp(); };
    document.body.append(button);
  }
  addEventListener('scroll', catchUp, { passive: true, capture: true });
  // What a person opened or closed stays so.
  htmx.registerExtension('opened', { htmx_before_morph_attr: (element, { attrName }) => attrName !== 'open' || !element.matches('details') });

  // After each update: what the server does not know is put back.
  const restore = () => {
    const theme = $('#theme'), hold = $('#hold');
    if (box() && following) toNewest();
    $$('#main [data-copy], #main [data-all]').forEach((button) => { button.hidden = false; });
    if (theme) { theme.hidden = false; theme.textContent = dark() ? 'Light' : 'Dark'; theme.title = 'Change the colors'; }
    if (hold) { hold.hidden = false; hold.textContent = held ? '○ Not live' : '● Live'; hold.title = held ? 'Follow changes again' : 'Stop following changes'; hold.setAttribute('aria-pressed', held); }
  };
  document.addEventListener('htmx:after:swap', restore);
  document.addEventListener('htmx:sse:after:message', restore);

  document.addEventListener('click', (event) => {
    const target = event.target.closest('button, a, summary');
    if (target?.id === 'theme') {
      document.documentElement.dataset.theme = dark() ? 'light' : 'dark';
      localStorage.setItem('theme', document.documentElement.dataset.theme);
      restore(); charts.forEach((c) => c.draw());
    } else if (target?.id === 'hold') { held = !held; restore(); catchUp(); }
    else if (target?.dataset.copy !== undefined) { copy(target); }
    else if (target?.dataset.all) { // chooses all rows of a table
      $$('input[type=checkbox][name="' + target.dataset.all + '"]').forEach((box) => { box.checked = true; });
    }
    // A click elsewhere closes an open menu.
    $$('details.popup[open]').forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
  });

  // An opened popup has the focus in its first field.
  document.addEventListener('toggle', (event) => {
    const menu = event.target;
    if (!menu.open || !menu.matches('details.popup') || menu.contains(document.activeElement?.closest('form, details.popup > div'))) return;
    $$('input, textarea, select, button', menu).find((field) => field.type !== 'hidden')?.focus();
  }, true);

  // A refused form gets its input back, and the error stands beside the field.
  function showRefused() {
    const refused = $('#refused'), wrong = $('#main [aria-invalid=true]');
    if (wrong) { wrong.scrollIntoView({ block: 'center' }); wrong.focus(); }
    if (!refused) return;
    const given = $$('textarea', refused), error = refused.parentElement;
    const form = $$('form[action="' + CSS.escape(refused.dataset.action) + '"]').find((form) =>
      $$('input[type=hidden]', form).every((field) => field.name === 'back' || given.some((g) => g.name === field.name && g.value === field.value)));
    if (!form) return;
    for (const { name, value } of given) {
      $$('[name="' + CSS.escape(name) + '"]', form).forEach((field) => {
        if (field.matches('[type=checkbox]')) field.checked ||= field.value === value;
        else if (field.type !== 'hidden') field.value = value;
      });
    }
    for (let menu = form.closest('details'); menu; menu = menu.parentElement.closest('details')) menu.open = true;
    const first = $$('input, textarea, select', form).find((field) => field.type !== 'hidden');
    const field = refused.dataset.field && $('[name="' + CSS.escape(refused.dataset.field) + '"]', form);
    refused.remove();
    error.id = 'refusal';
    if (field) {
      field.setAttribute('aria-invalid', true); field.setAttribute('aria-describedby', error.id);
      (field.closest('label') || field).after(error);
    } else $('button:not([type=button])', form).before(error);
    (field || first)?.focus();
    error.scrollIntoView({ block: 'center' });
  }

  // What only a script can do is hidden without one: copying, and choosing all rows.
  function copy(button) {
    navigator.clipboard?.writeText($('pre', button.parentElement).textContent).then(() => {
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    }, () => { button.textContent = 'Select the text'; });
  }

  // Keys: / search, g and a letter go to a screen, ? lists them, Escape closes.
  let going = 0;
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { $$('details.popup[open]').forEach((menu) => { menu.open = false; $('summary', menu).focus(); }); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.('input, textarea, select')) return;
    if (Date.now() - going < 1500) {
      going = 0;
      const link = $('.side a[data-key="' + CSS.escape(event.key) + '"]');
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (event.key === 'g') going = Date.now();
    else if (event.key === '/') { const field = $('#main input[type=search]'); if (field) { event.preventDefault(); field.focus(); } }
    else if (event.key === '?') keys();
  });
  function keys() {
    if ($('dialog[open]')) { $('dialog[open]').close(); return; }
    const dialog = document.createElement('dialog');
    const title = document.createElement('h2'); title.textContent = 'Keys'; dialog.append(title);
    const line = (key, text) => {
      const p = document.createElement('p'), kbd = document.createElement('kbd');
      kbd.textContent = key; p.append(kbd, ' ' + text); dialog.append(p);
    };
    line('/', 'search');
    $$('.side a[data-key]').forEach((a) => line('g ' + a.dataset.key, a.firstChild.textContent.trim()));
    line('?', 'this list'); line('Esc', 'close');
    dialog.addEventListener('close', () => dialog.remove());
    document.body.append(dialog); dialog.showModal();
  }

  // Charts.
  const charts = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  const paints = ['accent', 'info', 'warning'];
  const clock = (at, seconds) => new Date(at * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit',
    second: seconds ? '2-digit' : undefined, hour12: false });
  // A value with its unit; long times in larger units.
  const larger = { ' ms': [1000, ' s'], ' s': [120, ' min', 60], ' min': [120, ' h', 60] };
  function amount(value, unit) {
    if (value === null || value === undefined) return '–';
    const [from, next, by = from] = larger[unit] || [];
    if (value >= from) return amount(value / by, next);
    return (value >= 10000 ? +(value / 1000).toFixed(1) + ' k' : value >= 100 ? value.toFixed(0) : +value.toFixed(value < 10 ? 2 : 1)) + unit;
  }
  class Chart {
    constructor(figure) {
      this.figure = figure; this.box = $('.plot', figure);
      this.keys = figure.dataset.chart.split(' '); this.labels = figure.dataset.labels.split(','); this.unit = figure.dataset.unit || '';
      this.legend = document.createElement('p'); this.legend.className = 'legend'; figure.append(this.legend);
    }
    update(answer) { this.answer = answer; this.draw(); }
    draw() {
      if (!this.answer) return;
      const { at, first, queues, marks } = this.answer;
      const series = this.figure.dataset.queue ? queues[this.figure.dataset.queue] || {} : this.answer.series;
      this.data = [at, ...this.keys.map((key) => series[key] || at.map(() => null))].map((values) => values.slice(first));
      const any = this.data.slice(1).some((values) => values.some((value) => value !== null));
      this.plot?.destroy(); this.plot = null; this.box.classList.toggle('none', !any); this.legend.hidden = !any;
      if (!any) return;
      const axis = { stroke: colour('muted'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false }, font: '12px system-ui' };
      // A value without neighbours has no line: it is drawn as a point.
      const lone = (u, i) => u.data[i].flatMap((value, at, all) => value !== null && (all[at - 1] ?? null) === null && (all[at + 1] ?? null) === null ? [at] : []);
      const whole = this.unit ? undefined : [1, 2, 5].flatMap((n) => [1, 10, 100, 1000, 10000].map((by) => n * by)).sort((a, b) => a - b);
      this.plot = new uPlot({
        width: this.box.clientWidth, height: 160, padding: [8, 28, 0, 0], cursor: { y: false }, legend: { show: false },
        scales: { y: { range: (u, min, max) => [0, Math.max(max * 1.1, 1)] } },
        axes: [{ ...axis, size: 32, gap: 10, space: 70, values: (u, all, i, space, step) => all.map((at) => clock(at, step < 60)) },
          { ...axis, size: 64, incrs: whole, values: (u, all) => all.map((v) => amount(v, this.unit)) }],
        series: [{}, ...this.labels.map((label, i) => ({ label, width: 1.5,
          stroke: colour(paints[i]), fill: i === 0 && this.labels.length < 3 ? colour('wash') : undefined, points: { show: true, filter: lone, size: 5, fill: colour(paints[i]) } }))],
        hooks: { setCursor: [(u) => this.explain(u.cursor.idx)], draw: [(u) => {
          u.ctx.save(); u.ctx.strokeStyle = colour('muted'); u.ctx.setLineDash([3, 3]);
          for (const mark of marks) {
            const x = u.valToPos(mark.at, 'x', true);
            u.ctx.beginPath(); u.ctx.moveTo(x, u.bbox.top); u.ctx.lineTo(x, u.bbox.top + u.bbox.height); u.ctx.stroke();
          }
          u.ctx.restore();
        }] },
      }, this.data, this.box);
      this.explain();
    }
    // Writes the values under the pointer, or the newest ones, into the legend.
    explain(hovered) {
      const newest = this.data[0].findLastIndex((_, at) => this.data.slice(1).some((values) => values[at] !== null));
      const index = hovered ?? newest;
      this.legend.replaceChildren(...this.labels.map((label, i) => {
        const values = this.data[i + 1], key = document.createElement('span'), value = document.createElement('b');
        key.className = 'key ' + paints[i];
        value.textContent = amount(values[index], this.unit);
        key.append(label + ' ', value);
        return key;
      }), index === this.data[0].length - 1 ? 'now' : 'at ' + clock(this.data[0][index], true));
    }
  }
  // The axis starts with the data, but shows the last two points at least.
  function trim(answer) {
    const known = [answer.series.limit, answer.series.in].map((values) => values.findIndex((value) => value !== null)).filter((i) => i >= 0);
    answer.first = Math.max(0, Math.min(...known, answer.at.length - 2));
    answer.marks = answer.marks.filter((mark) => mark.at >= answer.at[answer.first]);
    return answer;
  }
  // The curves of several instances as one. Their clocks may differ, so a point is looked up by its time.
  function total([first, ...others]) {
    for (const other of others) {
      const index = new Map(other.at.map((at, i) => [at, i]));
      for (const key of Object.keys(first.series)) {
        const sum = ['in', 'out', 'in_flight', 'limit'].includes(key);
        first.series[key] = first.series[key].map((value, i) => {
          const more = other.series[key][index.get(first.at[i])] ?? null;
          return value === null || more === null ? value ?? more : sum ? value + more : Math.max(value, more);
        });
      }
      first.marks = [...first.marks, ...other.marks].sort((a, b) => a.at - b.at)
        .filter((mark, i, all) => !i || mark.text !== all[i - 1].text || mark.at - all[i - 1].at > 30);
    }
    return first;
  }
  async function loadCharts() {
    if (document.hidden || held || !charts.length) return;
    try {
      const { range, instances } = $('#charts').dataset;
      const answers = await Promise.all((instances || '').split(' ').map(async (id) => {
        const response = await fetch('/api/v1/series?range=' + range + (id && '&instance=' + id));
        return response.ok && response.json();
      }));
      if (!answers.some(Boolean)) return;
      const answer = trim(total(answers.filter(Boolean))), marks = $('#marks');
      charts.forEach((chart) => chart.update(answer));
      marks.hidden = answer.marks.length === 0;
      marks.textContent = 'Dashed lines: ' + answer.marks.slice(-5).map((mark) => clock(mark.at, false) + ' ' + mark.text.replace(/ \(.*?\)/, '')).join(' · ');
    } catch { /* the bar at the bottom tells it */ }
  }

  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start); else start();
  function start() {
    restore();
    showRefused();
    $$('[data-chart]').forEach((figure) => charts.push(new Chart(figure)));
    loadCharts();
    setInterval(loadCharts, 5000);
    // A chart's box also changes its width without the window, for example when a scroll bar appears.
    const sizes = new ResizeObserver(() => charts.forEach((c) => c.plot && c.plot.width !== c.box.clientWidth && c.draw()));
    charts.forEach((c) => sizes.observe(c.box));
  }
})();
