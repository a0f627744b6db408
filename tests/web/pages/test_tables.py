"""Rows of tables with the names of their columns."""

from markupsafe import Markup

from gateway.web.pages.tables import labelled


def test_each_cell_has_the_name_of_its_column():
    rows = Markup('<tr><th scope="row">a</th>\n<td><strong>b</strong></td></tr><tr><td>c</td><td>d</td><td>e</td></tr>')

    assert labelled(rows, ["Name", "<Of>"]) == (
        '<tr><th data-label="Name" scope="row">a</th>\n<td data-label="&lt;Of&gt;"><strong>b</strong></td></tr>'
        '<tr><td data-label="Name">c</td><td data-label="&lt;Of&gt;">d</td><td>e</td></tr>'
    )
